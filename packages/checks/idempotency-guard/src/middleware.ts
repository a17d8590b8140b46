import {
  copyResponse,
  guard,
  holdResponse,
  refuseUnparsedBody,
  whileConnected,
  type GuardRequest,
  type GuardResponse,
  type Middleware,
  type NextFunction,
} from "@countersign/express";
import type { KeptAnswer } from "./answer-record.ts";
import { admissionOf, keyOwner, runOf, type KeyOwner } from "./check.ts";
import { factory, type IdempotencyGuardOptions } from "./options.ts";
import { bodyNotParsed } from "./refusals.ts";
import type { OwnedRun, RequestIdempotency } from "./run.ts";

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
  const { admit, drain } = keyOwner(options);
  const claimKey = guard(factory, (req, res) => admit(req, (work) => whileConnected(res, work)));
  const middleware: Middleware = (req, res, next) =>
    claimKey(req, res, (error) => {
      if (error !== undefined) return next(error);
      if (runOf(req) !== undefined) refuseUnparsedBody(req, res, bodyNotParsed);
      beginHandler(req, res, next);
    });
  Object.defineProperty(middleware, "name", { value: claimKey.name });
  return Object.assign(middleware, { drain });
}

/**
 * Goes on with a request that was admitted: begins its handler, whose answer is held back until the key is settled, both in one
 * turn, so that no answer slips out between them; answers in its place where the key is done; or lets it pass. For doors on node:http.
 */
export function beginHandler(req: GuardRequest, res: GuardResponse, next: NextFunction): void {
  const admission = admissionOf(req);
  if (admission === undefined) {
    next(new Error("beginHandler: no key was claimed for this request"));
  } else if ("run" in admission) {
    beginRun(admission.run, { req, res, next });
  } else if ("answer" in admission) {
    // Somebody who has begun an answer meanwhile, such as a time-out, ends it.
    if (!res.headersSent) giveAgain(res, admission.answer);
  } else next();
}

function beginRun(
  run: OwnedRun,
  {
    req,
    res,
    next,
  }: { readonly req: GuardRequest; readonly res: GuardResponse; readonly next: NextFunction },
): void {
  if (res.writableEnded) {
    run.answeredBefore();
    return;
  }
  try {
    req.idempotency = run.handle;
    holdResponse(res, run);
    const { keeps } = run;
    if (keeps !== undefined) {
      copyResponse(res, { limitBytes: keeps.limitBytes, hear: (answer) => run.answered(answer) });
    }
  } catch (error) {
    // What the app has hung on the request or the response threw. Behind a promise Express would not see it.
    run.giveBack();
    next(error);
    return;
  }
  run.start(next);
}

function giveAgain(res: GuardResponse, { status, headers, body }: KeptAnswer): void {
  res.statusCode = status;
  // What the app has set for all answers gives way to what the first one had.
  for (const [name] of headers) res.removeHeader(name);
  for (const [name, value] of headers) res.appendHeader(name, value);
  // RFC 9110 section 8.6: none in a 204.
  if (status !== 204) res.setHeader("Content-Length", body.length);
  res.end(body);
}
