import { withDeadline } from "@countersign/core";

const checkTimeoutMs = 30_000;

/** For the questions that all steps wait for: a line that never answers must not stop them for ever. */
export function withinCheckTime<T>(factory: string, check: Promise<T>): Promise<T> {
  return withDeadline(
    check,
    checkTimeoutMs,
    () => new Error(`${factory}: the server did not answer within ${checkTimeoutMs} ms`),
  );
}
