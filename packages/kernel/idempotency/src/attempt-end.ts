// How an attempt of lease mode ends: one table for all adapters. Lease mode is for effects elsewhere, of which nobody but the handler knows
// whether they have happened. Adapters say what they saw; verdictOf() alone decides.
import { GuardError } from "@countersign/core";
import { comeAgain, deliberate } from "@countersign/core/internal";

/** How an attempt ended, as its adapter saw it. `status`: that of the response which leaves. */
export type AttemptEnd =
  | { readonly kind: "never-began"; readonly status: number | undefined }
  /** The handler sent its whole response itself, or returned it. */
  | { readonly kind: "responded"; readonly status: number }
  /** The handler began to respond with `begun`, and that response failed before its end: a stream, a serializer, a hook. */
  | { readonly kind: "response-failed"; readonly begun: number; readonly status: number }
  /** The handler threw or rejected; somebody else, such as an error handler, responds. */
  | { readonly kind: "threw"; readonly error: unknown; readonly status: number }
  /** The handler's route handed the request on; somebody else responds. */
  | { readonly kind: "handed-on"; readonly status: number }
  /** Somebody else, such as a time-out, ended the response while the handler worked. `status` is undefined if it was destroyed. */
  | { readonly kind: "taken"; readonly status: number | undefined }
  /** The caller left, and nothing ends the response, or only for that reason. */
  | { readonly kind: "deserted"; readonly status: number | undefined }
  /** The handler ended and gave no response. */
  | { readonly kind: "without-response" }
  /** The handler's promise has settled after somebody else ended the response: nothing tells whether it has succeeded. */
  | { readonly kind: "unheard" };

export interface AttemptVerdict {
  /** `leased`: the handler's own end decides when it is known, otherwise the end of its lease. */
  readonly key: "done" | "held" | "free" | "leased";
  /** Why an operator has to decide; only for `held`. */
  readonly reason?: string;
  /** The response that leaves: as it is, or 500 in its place. */
  readonly response: "as-is" | 500;
  /** True for a response that says "paid already" of a key that is not done: an alarm follows. */
  readonly isFalse409: boolean;
}

export interface EndRules {
  readonly recovery: "hold" | "rerun";
  /** True if 409 is reserved for keys that are done. */
  readonly isReserved: boolean;
}

/** Decides what becomes of the key and of the response of an attempt that has ended. */
export function verdictOf(end: AttemptEnd, { recovery, isReserved }: EndRules): AttemptVerdict {
  const status = "status" in end ? end.status : undefined;
  const isFalse409 = isReserved && status === 409;
  const isHandlersResponse = end.kind === "responded" || end.kind === "handed-on";
  const response =
    isFalse409 || (!isHandlersResponse && status !== undefined && isSuccess(status)) ? 500 : "as-is";
  const of = (key: AttemptVerdict["key"], reason?: string): AttemptVerdict =>
    reason === undefined ? { key, response, isFalse409 } : { key, reason, response, isFalse409 };
  const heldUnlessRerun = (reason: string): AttemptVerdict =>
    recovery === "hold" ? of("held", reason) : of("free");
  const heldUnlessLeased = (reason: string): AttemptVerdict =>
    recovery === "hold" ? of("held", reason) : of("leased");

  switch (end.kind) {
    case "never-began":
      return of("free");
    case "unheard":
      return heldUnlessRerun("its handler ended after its response, and may have had its effect");
    case "responded":
      if (isSuccess(end.status)) return of("done");
      if (isRefusal(end.status) && !isFalse409) return of("free");
      return heldUnlessRerun(`its handler responded ${end.status}, and may have had its effect`);
    case "response-failed":
      return of("held", `its handler began to respond ${end.begun}, and then that response failed`);
    case "threw":
      if (deliberate.saysNothingHappened(end.error)) return of("free");
      if (response === 500 && !isFalse409) {
        const others = `somebody else responded ${end.status}: look whether that has paid`;
        return heldUnlessRerun(`its handler threw ${nameOf(end.error)}, and ${others}`);
      }
      return heldUnlessRerun(`its handler threw ${nameOf(end.error)}, and may have had its effect`);
    case "handed-on":
      if (isSuccess(end.status)) return of("done");
      return heldUnlessRerun(
        `its handler passed the request on, and ${end.status} was responded behind its handler, which may have had its effect`,
      );
    case "taken": {
      const how =
        end.status === undefined ? "was destroyed" : `was ended with ${end.status} by somebody else`;
      return heldUnlessLeased(`its response ${how} while its handler may still have been at work`);
    }
    case "deserted":
      if (end.status === undefined) return heldUnlessLeased("its caller had left before its response ended");
      return heldUnlessRerun(
        `its handler responded ${end.status} after its caller had left, and may have had its effect`,
      );
    case "without-response":
      break;
  }
  return of("held", "its handler gave no response, and may have had its effect");
}

/** True for a status by which a handler says that its effect has happened: 2xx, or 3xx, as Post/Redirect/Get responds. */
export function isSuccess(status: number): boolean {
  return status >= 200 && status < 400;
}

/** Statuses that servers in between relay or make: they say nothing about the effect. */
const relayed: ReadonlySet<number> = new Set([408, 425, 429]);

function isRefusal(status: number): boolean {
  return status >= 400 && status < 500 && !relayed.has(status);
}

// Its message may hold what no operator's list should show.
function nameOf(error: unknown): string {
  const name: unknown = Object(error).name;
  return typeof name === "string" && name !== "" ? `an error (${name})` : "what is no Error";
}

const maxRetryAfterSeconds = 86_400;

/**
 * For a handler that says that nothing has happened: `throw retryLater("the bank is closed")` frees the key under both recoveries, undoes
 * what the handler's transaction wrote, and responds 503 with Retry-After. The reason is for the log, not for the caller. Throws a
 * TypeError on a bad argument.
 */
export function retryLater(
  reason: string,
  { retryAfterSeconds = 5 }: { readonly retryAfterSeconds?: number | undefined } = {},
): GuardError<"retry-later"> {
  if (typeof reason !== "string" || reason === "") {
    throw new TypeError("retryLater: reason must be a string that is not empty");
  }
  if (
    !Number.isInteger(retryAfterSeconds) ||
    retryAfterSeconds < 1 ||
    retryAfterSeconds > maxRetryAfterSeconds
  ) {
    throw new TypeError(`retryLater: retryAfterSeconds must be an integer from 1 to ${maxRetryAfterSeconds}`);
  }
  const message = `the handler asks to try again later: ${reason}`;
  return deliberate.mark(new GuardError<"retry-later">(comeAgain("retry-later", message, retryAfterSeconds)));
}
