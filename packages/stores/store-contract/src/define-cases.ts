import type { ContractCase } from "./harness.ts";

/** The `test` of a runner: jest, node:test, vitest and others have one of this shape. */
interface TestFunction {
  (name: string, run: () => Promise<void>, timeoutMs?: number): unknown;
  skip: (name: string, run: () => Promise<void>) => unknown;
}

export interface TestRunner {
  readonly test: TestFunction;
  /** Default: the cases are not grouped. */
  readonly describe?: ((title: string, define: () => void) => unknown) | undefined;
  /** The title of the group. Default `store contract`. */
  readonly title?: string | undefined;
}

// Longer than a case takes at most, so that a case's own message is the one that is seen.
const timeoutMs = 90_000;

/** Hands the cases to a test runner. With jest or node:test: `defineCases(cases, { describe, test })`. */
export function defineCases(cases: readonly ContractCase[], runner: TestRunner): void {
  const { test, describe, title = "store contract" } = runner;
  const define = (): void => {
    for (const { name, run, skipped } of cases) {
      if (skipped === undefined) test(name, run, timeoutMs);
      else test.skip(`${name} (${skipped})`, run);
    }
  };
  if (describe === undefined) define();
  else describe(title, define);
}
