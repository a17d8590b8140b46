import { guardChannel, wasHeard } from "./diagnostics.ts";
import { isGuardError } from "./guard-error.ts";
import { assertAllHeaderLines } from "./header-lines.ts";
import { writeStderrLine } from "./stderr-lines.ts";
import type { GuardRequest, GuardResponse, Middleware, NextFunction } from "./types.ts";
import { boundUnreadBody } from "./unread-body.ts";

/** Decides about one request: returns to let it pass, throws to refuse it. */
export type GuardFunction = (req: GuardRequest, res: GuardResponse) => void | Promise<void>;

/** The code with which a guard says that the client left before its request was complete. */
export const requestAborted = "request-aborted";

/**
 * Turns `decide` into a middleware named `<name>Middleware`. A throw or a rejection reaches `next(error)` on Express 4 and 5
 * alike, a return calls `next()`. Refuses a request of which Node may have dropped header lines (431) before it asks `decide`.
 * Publishes a GuardEvent when `countersign:guard` has subscribers; without, a refusal is a line on stderr. What a refusal left
 * unread of the body is drained within a bound, whoever answers. A GuardError with the code `request-aborted` ends in silence:
 * nobody is left to answer.
 */
export function guard(name: string, decide: GuardFunction): Middleware {
  const middleware: Middleware = (req, res, next) => {
    const passage = { name, req, res, next, startedAt: guardChannel.hasSubscribers ? performance.now() : 0 };
    let verdict: void | Promise<void>;
    try {
      assertAllHeaderLines(req);
      verdict = decide(req, res);
    } catch (error) {
      refuse(passage, error);
      return;
    }
    if (verdict === undefined) {
      pass(passage);
      return;
    }
    // oxlint-disable-next-line promise/prefer-await-to-then -- a throw inside next() must not come back as a second next(error)
    verdict.then(
      () => pass(passage),
      (error: unknown) => refuse(passage, error),
    );
  };
  return Object.defineProperty(middleware, "name", { value: `${name}Middleware` });
}

interface Passage {
  readonly name: string;
  readonly req: GuardRequest;
  readonly res: GuardResponse;
  readonly next: NextFunction;
  /** 0 when nobody listened at the start. */
  readonly startedAt: number;
}

const passed = { status: undefined, code: undefined };

function pass(passage: Passage): void {
  if (passage.startedAt !== 0) publish(passage, undefined);
  passage.next();
}

function refuse(passage: Passage, error: unknown): void {
  // next(undefined), next("route") and next("router") would skip the refusal.
  const reason =
    error instanceof Error
      ? error
      : new Error(`${passage.name} threw a value that is no Error`, { cause: error });
  if (passage.startedAt !== 0) publish(passage, reason);
  if (isGuardError(reason) && reason.code === requestAborted) return;
  boundUnreadBody(passage.req, passage.res);
  try {
    passage.next(reason);
  } finally {
    // Behind next(), where the answer usually is: an onReject may have heard of it, and nobody waits for the line.
    if (passage.startedAt === 0 && !guardChannel.hasSubscribers && !wasHeard(passage.req))
      write(passage, reason);
  }
}

function write({ name, req }: Passage, error: Error): void {
  const { status, code } = verdictOf(error);
  // Without the target: the path of a webhook is a secret.
  writeStderrLine({ guard: name, code, what: `refused a ${req.method} with ${status}`, error });
}

function verdictOf(error: unknown): { readonly status: number; readonly code: string } {
  return isGuardError(error) ? error : { status: 500, code: "unexpected-error" };
}

function publish({ name, req, startedAt }: Passage, error: unknown): void {
  const durationMs = performance.now() - startedAt;
  const { status, code } = error === undefined ? passed : verdictOf(error);
  const outcome = status === undefined ? "pass" : status < 500 ? "reject" : "error";
  guardChannel.publish({ guard: name, outcome, code, status, durationMs, req, error });
}
