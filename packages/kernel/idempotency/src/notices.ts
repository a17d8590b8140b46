import { quoteForLog, type GuardNotice } from "@countersign/core";
import { publishFailure, publishNotice } from "@countersign/core/door";

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
