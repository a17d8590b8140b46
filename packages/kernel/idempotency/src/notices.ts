import { isGuardError, quoteForLog, type GuardNotice } from "@countersign/core";
import { publishFailure, publishNotice } from "@countersign/core/internal";

export interface KeyNotice {
  readonly code: string;
  readonly key: string;
  /** Follows the quoted key in the message. */
  readonly message: string;
  readonly req?: GuardNotice["req"];
  readonly error?: unknown;
}

export function notice(guard: string, { code, key, message, req, error }: KeyNotice): boolean {
  return publishNotice({ guard, code, message: `key ${quoteForLog(key)} ${message}`, req, error });
}

/** As {@link notice}; without subscribers one line on stderr. */
export function failure(guard: string, { code, key, message, req, error }: KeyNotice): void {
  publishFailure({ guard, code, message: `key ${quoteForLog(key)} ${message}`, req, error });
}

/** As {@link notice}, for what may concern money; without subscribers a process warning. */
export function alarm(guard: string, event: KeyNotice): void {
  if (notice(guard, event)) return;
  process.emitWarning(`${guard}: key ${quoteForLog(event.key)} ${event.message}`, {
    type: "CountersignWarning",
    code: event.code,
  });
}

export interface KeyNotices {
  notice(event: KeyNotice): void;
  failure(event: KeyNotice): void;
  alarm(event: KeyNotice): void;
}

/** {@link notice}, {@link failure} and {@link alarm} of one guard. */
export function keyNotices(guard: string): KeyNotices {
  return {
    notice: (event) => void notice(guard, event),
    failure: (event) => failure(guard, event),
    alarm: (event) => alarm(guard, event),
  };
}

const ends: ReadonlyMap<string, string> = new Map([
  ["commit-unknown", "has a COMMIT without a reply: it is done, or comes again"],
  ["nothing-written", "has a handler that has changed no row by its tx, and is held"],
  ["transaction-broken", "has a handler that broke its transaction, which is rolled back"],
  [
    "transaction-held",
    "has a handler that failed after something of its transaction had committed, and is held, or done if all of it had",
  ],
  [
    "transaction-unknown",
    "has a handler that failed, and its store did not say whether something of its transaction had committed: it may be done",
  ],
]);

/** Codes of runs that leave a key for an operator: held, or in a state that the store did not tell. */
const leavesToOperator: ReadonlySet<string> = new Set([
  "nothing-written",
  "transaction-held",
  "transaction-unknown",
]);

/** {@link noticeOfEnd} of a run whose key an operator has to look at, whoever asks. */
export function noticeForOperator(error: unknown): ReturnType<typeof noticeOfEnd> {
  return isGuardError(error) && leavesToOperator.has(error.code) ? noticeOfEnd(error) : undefined;
}

/** What an operator has to hear of how a transaction ended, for work that has no verdict, such as an event. */
export function noticeOfEnd(error: unknown): Pick<KeyNotice, "code" | "message" | "error"> | undefined {
  const code = isGuardError(error) ? error.code : "";
  const message = ends.get(code);
  return message === undefined ? undefined : { code, message, error };
}
