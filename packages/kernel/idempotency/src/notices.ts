import { quoteForLog, type GuardNotice } from "@countersign/core";
import { publishFailure, publishNotice } from "@countersign/core/door";

/** What an operator should know about one key. */
export interface KeyNotice {
  /** Stable machine code in kebab-case. */
  readonly code: string;
  readonly key: string;
  /** Follows the quoted key in the message. */
  readonly message: string;
  readonly req?: GuardNotice["req"];
  readonly error?: unknown;
}

/** Publishes on `countersign:notice`. */
export function notice(guard: string, { code, key, message, req, error }: KeyNotice): boolean {
  return publishNotice({ guard, code, message: `key ${quoteForLog(key)} ${message}`, req, error });
}

/** Without subscribers one line on stderr. */
export function failure(guard: string, { code, key, message, req, error }: KeyNotice): void {
  publishFailure({ guard, code, message: `key ${quoteForLog(key)} ${message}`, req, error });
}

/** For what may concern money: without subscribers a process warning. */
export function alarm(guard: string, event: KeyNotice): void {
  if (notice(guard, event)) return;
  process.emitWarning(`${guard}: key ${quoteForLog(event.key)} ${event.message}`, {
    type: "CountersignWarning",
    code: event.code,
  });
}
