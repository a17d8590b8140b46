import { isGuardError } from "@countersign/core";
import { causedBy } from "@countersign/core/internal";

/** What the attempt of a task may say of the next one, beside its reason. */
export interface TaskFailureOptions {
  /** When the next attempt may begin, in milliseconds from now, at most a year. Default: by the worker's backoff. */
  readonly retryInMs?: number | undefined;
  /** No other attempt: the task becomes a dead letter. Default false. */
  readonly isFinal?: boolean | undefined;
  readonly cause?: unknown;
}

const yearMs = 31_536_000_000;

/** Thrown by the attempt of a task: why it failed, and what is to follow. */
export class TaskError extends Error {
  readonly retryInMs: number | undefined;
  readonly isFinal: boolean;

  constructor(reason: string, { retryInMs, isFinal = false, cause }: TaskFailureOptions = {}) {
    super(reason, causedBy(cause));
    if (
      retryInMs !== undefined &&
      !(Number.isSafeInteger(retryInMs) && retryInMs >= 0 && retryInMs <= yearMs)
    ) {
      throw new TypeError(`TaskError: retryInMs must be an integer from 0 to ${yearMs}, got ${retryInMs}`);
    }
    this.name = "TaskError";
    this.retryInMs = retryInMs;
    this.isFinal = isFinal;
  }
}

const longestReason = 2_000;

/** The reason that a row keeps of what an attempt threw. */
export function reasonOf(error: unknown): string {
  try {
    const text = error instanceof Error ? textOf(error) : String(error);
    return text.slice(0, longestReason) || "an error without a message";
  } catch {
    // Such as an object without a prototype.
    return "an error that has no text";
  }
}

function textOf(error: Error): string {
  // Ours, whose cause says what was the matter with the transaction.
  if (isGuardError(error) && error.cause !== undefined) return `${error.message}: ${reasonOf(error.cause)}`;
  return nameAndMessage(error);
}

function nameAndMessage({ name, message }: Error): string {
  if (name === "Error" || name === "TaskError") return message;
  return message === "" ? name : `${name}: ${message}`;
}
