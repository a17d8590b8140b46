interface Written {
  expect(pattern: RegExp, times: number | undefined): void;
  mark(): () => void;
}

// test/support/runs/environment.mjs puts it there, and fails a test whose expectations and output differ.
const written: Written = Reflect.get(globalThis, Symbol.for("countersign.test.written"));

/**
 * Expects `times` process warnings or lines (of console, stdout or stderr, also of child processes) that match `pattern` while this test runs.
 * A warning's text is `[code] name: message`. Infinity means one or more. Without this call each of them fails the test.
 */
export function expectWarning(pattern: RegExp, times = 1): void {
  written.expect(pattern, times);
}

/** Allows any number of such warnings or lines, also none: for a table whose other columns decide whether one comes. */
export function allowWarnings(pattern: RegExp): void {
  written.expect(pattern, undefined);
}

/** Returns a function that forgets what has been written and expected since this call: for a test that runs its body again. */
export function markWarnings(): () => void {
  return written.mark();
}
