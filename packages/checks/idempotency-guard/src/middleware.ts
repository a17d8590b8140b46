import { capturedRawBody } from "@countersign/core/door";
import { holdResponse, whileConnected } from "@countersign/express/door";
import {
  guard,
  type GuardRequest,
  type GuardResponse,
  type Middleware,
  type NextFunction,
} from "@countersign/express";
import type { KeptAnswer } from "./answer-record.ts";
import { keyGuard, type Admission, type KeyGuard } from "./check.ts";
import {
  keyHeaderPreset,
  type IdempotencyKeyHeaderOptions,
  type IdempotencyKeyHeaderPreset,
} from "./key-header.ts";
import { factoryName, type IdempotencyGuardOptions as OptionsOf } from "./options.ts";
import { refusal } from "./refusals.ts";
import type { OwnedRun, RequestIdempotency } from "./run.ts";

declare global {
  namespace Express {
    interface Request {
      /** The attempt that idempotencyGuard() admitted. */
      idempotency?: RequestIdempotency | undefined;
    }
  }
}

/** Options of {@link idempotencyGuard}. `Native` is the request of the framework. */
export type IdempotencyGuardOptions<Native = GuardRequest> = OptionsOf<Native>;

/**
 * The field Idempotency-Key as draft-ietf-httpapi-idempotency-key-header-07 has it, to be spread into the options of
 * `idempotencyGuard`: a structured-field string in POST and PATCH; 400 without one, 409 while the first request runs, 422 for a key
 * that comes again with another request. What one request is: its method, its target, its caller and the bytes of its body. Throws a
 * TypeError on a bad option.
 */
export function idempotencyKeyHeader<Native = GuardRequest>(
  options: IdempotencyKeyHeaderOptions<Native> = {},
): IdempotencyKeyHeaderPreset {
  return keyHeaderPreset(options);
}

/** What {@link idempotencyGuard} makes. */
export interface DrainableMiddleware extends Middleware, Pick<KeyGuard<GuardRequest>, "drain"> {}

/**
 * Runs what follows at most once for each idempotency key: claims the key, holds the answer back until the key is recorded as
 * done, and answers 409 from then on. Any answer but a 2xx frees the key. Sets `req.idempotency`. Throws a TypeError on a
 * bad option.
 */
export function idempotencyGuard(options: IdempotencyGuardOptions): DrainableMiddleware {
  const { admit, drain } = keyGuard(options);
  const middleware = guard(factoryName, (req, res) => admit(req, (work) => whileConnected(res, work)), {
    found(admission: Admission, req, res, next) {
      if ("run" in admission) refuseUnparsedBody(req, res);
      goOn(admission, { req, res, next });
    },
  });
  return Object.assign(middleware, { drain });
}

/**
 * Makes reading an unparsed `req.body` throw: `undefined` would pass for a payload without members, and `express.json()` after a check
 * silently parses nothing. It is undefined again once the answer has left, for the app's loggers.
 */
function refuseUnparsedBody(req: GuardRequest, res: GuardResponse): void {
  const bytes = capturedRawBody(req);
  if (req.body !== undefined || bytes === undefined || bytes.length === 0) return;
  Object.defineProperty(req, "body", {
    configurable: true,
    get() {
      if (res.headersSent || res.writableEnded) return undefined;
      throw refusal("body-not-parsed");
    },
    set(value: unknown) {
      Object.defineProperty(req, "body", { value, writable: true, enumerable: true, configurable: true });
    },
  });
}

/** A request on its way to the handler of a door on node:http. */
export interface Passage {
  readonly req: GuardRequest;
  readonly res: GuardResponse;
  readonly next: NextFunction;
}

/** Goes on with a request that was admitted: begins its handler, answers in its place where the key is done, or lets it pass. */
export function goOn(admission: Admission, passage: Passage): void {
  if ("run" in admission) beginHandler(admission.run, passage);
  else if ("passes" in admission) passage.next();
  // Somebody who has begun an answer meanwhile, such as a time-out, ends it.
  else if (!passage.res.headersSent) giveAgain(passage.res, admission.answer);
}

/**
 * Begins the handler of a request that owns its key, and holds its answer back until the key is settled: both in one turn, so that no
 * answer slips out between them.
 */
export function beginHandler(run: OwnedRun, { req, res, next }: Passage): void {
  if (res.writableEnded) {
    run.answeredBefore();
    return;
  }
  try {
    req.idempotency = run.handle;
    holdResponse(res, run);
  } catch (error) {
    // A setter of the app on the request or response threw. After a promise Express would not see it.
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
