import { test } from "@jest/globals";
import { markWarnings } from "./expect-warning.ts";

/** How long this process may stand still before what a test saw of time-outs and leases says nothing about them. */
const stallMs = 100;
const attempts = 5;
// For all attempts of a test.
const patienceMs = 300_000;

/** From now on; the function that is returned ends it, and tells for how long the process has stood still at most. */
function watchStalls(): () => number {
  let lookedAtMs = performance.now();
  let longestMs = 0;
  const look = (): void => {
    const nowMs = performance.now();
    longestMs = Math.max(longestMs, nowMs - lookedAtMs);
    lookedAtMs = nowMs;
  };
  const timer = setInterval(look, 10);
  return () => {
    clearInterval(timer);
    look();
    return longestMs;
  };
}

/**
 * The body of a test: when it fails and this process stood still meanwhile, as on a machine with other work to do, it is run
 * again, five times in all. What fails without such a stall has failed. The body brings what it needs each time, keys included.
 */
export function steadily<Args extends readonly unknown[]>(
  body: (...args: Args) => Promise<void>,
): (...args: Args) => Promise<void> {
  return async (...args) => {
    for (let attempt = 1; ; attempt += 1) {
      const longestStall = watchStalls();
      const forgetWarnings = markWarnings();
      try {
        await body(...args);
        return;
      } catch (error) {
        if (longestStall() < stallMs || attempt === attempts) throw error;
        forgetWarnings();
      } finally {
        longestStall();
      }
    }
  };
}

type Arguments<Row> = Row extends readonly unknown[] ? { -readonly [Index in keyof Row]: Row[Index] } : [Row];

/** jest's `test` for what real time-outs and leases, servers and processes decide: its bodies run {@link steadily}. */
export const steadyTest = Object.assign(
  (title: string, body: () => Promise<void>, timeoutMs = patienceMs): void =>
    test(title, steadily(body), timeoutMs),
  {
    each:
      <const Row>(rows: readonly Row[]) =>
      (title: string, body: (...row: Arguments<Row>) => Promise<void>, timeoutMs = patienceMs): void =>
        test.each(rows as readonly unknown[])(title, steadily(body) as never, timeoutMs),
  },
);
