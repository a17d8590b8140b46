import {
  guard,
  holdResponse,
  whileConnected,
  type GuardRequest,
  type GuardResponse,
  type Middleware,
  type NextFunction,
} from "@countersign/express";
import { keyOwner, runOf, type KeyOwner } from "./check.ts";
import { factory, type IdempotencyGuardOptions } from "./options.ts";
import type { RequestIdempotency } from "./run.ts";

declare global {
  namespace Express {
    interface Request {
      /** The attempt that idempotencyGuard() admitted. */
      idempotency?: RequestIdempotency | undefined;
    }
  }
}

/** What {@link idempotencyGuard} makes. */
export interface DrainableMiddleware extends Middleware, Pick<KeyOwner<GuardRequest>, "drain"> {}

/**
 * Runs what follows at most once for each idempotency key: claims the key, holds the answer back until the key is recorded as
 * done, and answers 409 from then on. Any answer but a 2xx frees the key. Sets `req.idempotency`. Throws a TypeError on a
 * bad option.
 */
export function idempotencyGuard(options: IdempotencyGuardOptions): DrainableMiddleware {
  const { own, drain } = keyOwner(options);
  const claimKey = guard(factory, (req, res) => own(req, (work) => whileConnected(res, work)));
  const middleware: Middleware = (req, res, next) =>
    claimKey(req, res, (error) => {
      if (error === undefined) beginHandler(req, res, next);
      else next(error);
    });
  Object.defineProperty(middleware, "name", { value: claimKey.name });
  return Object.assign(middleware, { drain });
}

/**
 * Begins the handler of a request whose key was claimed, its answer held back until the key is settled; both in one turn, so that
 * no answer slips out between them. For doors on node:http.
 */
export function beginHandler(req: GuardRequest, res: GuardResponse, next: NextFunction): void {
  const run = runOf(req);
  if (run === undefined) {
    next(new Error("beginHandler: no key was claimed for this request"));
    return;
  }
  if (res.writableEnded) {
    run.answeredBefore();
    return;
  }
  try {
    req.idempotency = run.handle;
    holdResponse(res, run);
  } catch (error) {
    // What the app has hung on the request or the response threw. Behind a promise Express would not see it.
    run.giveBack();
    next(error);
    return;
  }
  run.start(next);
}
