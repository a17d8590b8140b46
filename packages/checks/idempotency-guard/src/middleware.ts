import { isGuardError } from "@countersign/core";
import { isPromiseLike, warnOfError } from "@countersign/core/internal";
import { assertLastOnRoute, holdResponse, offerBody, whileConnected } from "@countersign/express/internal";
import {
  guard,
  type ErrorMiddleware,
  type GuardRequest,
  type GuardResponse,
  type Middleware,
  type NextFunction,
} from "@countersign/express";
import type { TransactionMode } from "@countersign/idempotency";
import type { KeptAnswer } from "./answer-record.ts";
import { keyGuard } from "./check.ts";
import {
  keyHeaderPreset,
  type IdempotencyKeyHeaderOptions,
  type IdempotencyKeyHeaderPreset,
} from "./key-header.ts";
import {
  factoryName,
  type IdempotencyGuardOptions as OptionsOf,
  type IdempotencyTransactionOptions as TransactionOptionsOf,
} from "./options.ts";
import type { Handling } from "./keyed-request.ts";
import type { Drainable, Performance } from "./perform-request.ts";
import type { RequestIdempotency } from "./request-idempotency.ts";
import { ResponseWatch } from "./response-watch.ts";

declare global {
  namespace Express {
    interface Request {
      /** The attempt that idempotencyGuard() admitted. */
      idempotency?: RequestIdempotency | undefined;
    }
  }
}

/** Options of {@link idempotencyGuard}; `Native` is the framework's request. */
export type IdempotencyGuardOptions<Native = GuardRequest> = OptionsOf<Native>;

/** Options of {@link idempotencyGuard} around a handler that gets the transaction of its key. */
export type IdempotencyTransactionOptions<
  Tx,
  Mode extends TransactionMode,
  Native = GuardRequest,
> = TransactionOptionsOf<Native, Tx, Mode>;

/**
 * The field Idempotency-Key of draft-ietf-httpapi-idempotency-key-header-07, to spread into the options of `idempotencyGuard`: a
 * structured-field string in POST and PATCH; 400 without one, 409 while the first request runs, 422 for the key of another request.
 * Requests are equal by method, target, caller and body bytes. Throws a TypeError on a bad option.
 */
export function idempotencyKeyHeader<Native = GuardRequest>(
  options: IdempotencyKeyHeaderOptions<Native> = {},
): IdempotencyKeyHeaderPreset {
  return keyHeaderPreset(options);
}

export interface DrainableMiddleware extends Middleware, Drainable {}

/**
 * Runs what follows at most once for each idempotency key. Claims the key, holds the answer back until the key is recorded as done, and
 * then answers 409. Any answer but a 2xx frees the key. Sets `req.idempotency`. With `stores` and `handle` nothing follows: the handler
 * gets the transaction, and its answer leaves after COMMIT. Throws a TypeError on a bad option.
 */
export function idempotencyGuard<Tx = never, Mode extends TransactionMode = TransactionMode>(
  options: IdempotencyGuardOptions | IdempotencyTransactionOptions<Tx, Mode>,
): DrainableMiddleware {
  const { givesTransaction, perform, drain, reserved } = keyGuard<GuardRequest>(options);
  const isLast =
    givesTransaction &&
    Reflect.get(options, "methods") === undefined &&
    Reflect.get(options, "required") !== false;
  const decide = (req: GuardRequest, res: GuardResponse): Promise<Admission> => {
    const connected: Handling["whileConnected"] = (work) => whileConnected(res, work);
    if (!givesTransaction)
      return admission(req, (begin) => perform(req, { whileConnected: connected, begin }));
    assertLastOnRoute(req, { own: middleware, called: "idempotencyGuard() with handle", isLast });
    // The handler reads `req.body` before this guard has passed.
    offerBody(req, res);
    const early = new EarlyAnswer(res, reserved);
    const around = (handle: () => unknown): unknown => {
      early.watch();
      return early.around(handle);
    };
    return admission(req, (begin) =>
      perform(req, { whileConnected: connected, begin, around }).finally(() => early.over()),
    );
  };
  const middleware: Middleware = guard(factoryName, decide, {
    found(admitted: Admission, req, res, next) {
      goOn(admitted, { req, res, next });
    },
    refused: refusedUnpaid(reserved),
  });
  return Object.assign(middleware, { drain });
}

/** What follows for a request on Node: its handler begins, under this watch, or there is a whole response to send. */
export type Admission =
  | { readonly watch: ResponseWatch }
  | { readonly response: KeptAnswer }
  | { readonly passes: true };

/** Nobody knows what has become of the key. */
function lostEnd(watch: ResponseWatch, error: unknown): void {
  warnOfError(factoryName, "lost the end of a key", error);
  watch.decided({ status: 500 });
}

/**
 * Performs a request on Node, where the handler of lease mode is another function that follows. Resolves as soon as that may begin; the
 * response which it then gives is held back by its watch until the key has ended.
 */
export function admission(
  req: object,
  perform: (begin: Handling["begin"]) => Promise<Performance | { readonly passes: true }>,
): Promise<Admission> {
  return new Promise((resolve, reject) => {
    let watch: ResponseWatch | undefined;
    const begin: Handling["begin"] = (owned) => {
      watch = new ResponseWatch(req, owned);
      resolve({ watch });
      return watch.end;
    };
    const performed = async (): Promise<void> => {
      try {
        const performance = await perform(begin);
        if (!("replacement" in performance)) resolve(performance);
        else if (watch === undefined) reject(new Error("the handler of an owned key could not begin"));
        else watch.decided(performance.replacement);
      } catch (error) {
        if (watch === undefined) reject(error);
        else lostEnd(watch, error);
      }
    };
    void performed();
  });
}

function refusedUnpaid(reserved: boolean): ErrorMiddleware {
  return (error, _req, res, next) => {
    unpaidAnswers(res, error, reserved);
    next(error);
  };
}

/**
 * I16: this attempt has committed nothing, or claimed no key. Makes an app's error handler that answers with a success answer 500: it would
 * lose the payment. Likewise one that answers 409 where that is `reserved` for "paid already", unless the error is that of a done key.
 */
export function unpaidAnswers(res: GuardResponse, error: unknown, reserved: boolean): void {
  const isLost409 = reserved && !(isGuardError(error) && error.status === 409);
  holdResponse(res, { decide: async (status) => unlessPaid(status, isLost409), unsendable });
}

/** A 500 in place of an answer that says "paid". */
function unlessPaid(status: number, isPaid409: boolean): { readonly status: 500 } | undefined {
  const saysPaid = (isPaid409 && status === 409) || (status >= 200 && status < 300);
  return saysPaid ? { status: 500 } : undefined;
}

function unsendable(fault: unknown): void {
  warnOfError(factoryName, "could not send an answer", fault);
}

/**
 * What a handler in a transaction answers by the response itself, before COMMIT. It must not say "paid", and below 500, which is another's
 * time-out, it is an error that rolls back: a retry of what was refused would be told that it is paid. What comes when the handler has
 * ended, of work that nobody awaited, is 500.
 */
export class EarlyAnswer {
  readonly #res: GuardResponse;
  readonly #reserved: boolean;
  #isWatched = false;
  #phase: "before" | "running" | "ended" | "over" = "before";
  #hasBegun = false;
  #status: number | undefined;

  constructor(res: GuardResponse, reserved: boolean) {
    this.#res = res;
    this.#reserved = reserved;
  }

  /** From when on the handler can reach the response. */
  watch(): void {
    if (this.#isWatched) return;
    this.#isWatched = true;
    holdResponse(this.#res, {
      isDue: () => {
        this.#hasBegun = this.#phase === "running";
        return this.#hasBegun || this.#phase === "ended";
      },
      decide: async (status) => {
        this.#status = status;
        return this.#hasBegun || status >= 500 ? unlessPaid(status, this.#reserved) : tooEarly();
      },
      unsendable,
    });
  }

  around(handle: () => unknown): unknown {
    this.#enter("running");
    try {
      const result = handle();
      if (isPromiseLike(result)) return result.then((value) => this.#ended(value), this.#failed);
      return this.#ended(result);
    } catch (error) {
      return this.#failed(error);
    }
  }

  /** The transaction has ended: from now on answers tell what became of it. */
  over(): void {
    this.#enter("over");
  }

  #enter(phase: "running" | "ended" | "over"): void {
    // What nobody waits for any more may run on.
    if (this.#phase !== "over") this.#phase = phase;
  }

  readonly #failed = (error: unknown): never => {
    this.#enter("ended");
    throw error;
  };

  #ended(value: unknown): unknown {
    this.#enter("ended");
    if (!this.#hasBegun || (this.#status ?? this.#res.statusCode) >= 500) return value;
    throw answeredEarly();
  }
}

function answeredEarly(): TypeError {
  return new TypeError(
    "a handler in a transaction answered by the response itself, before COMMIT: return answer(status, body), or throw refuse(code)",
  );
}

/** A 500 in place of an answer whose handler has ended: its transaction goes on. */
function tooEarly(): { readonly status: 500 } {
  warnOfError(factoryName, "replaced an answer by 500", answeredEarly());
  return { status: 500 };
}

export interface Passage {
  readonly req: GuardRequest;
  readonly res: GuardResponse;
  readonly next: NextFunction;
}

/** Begins an admitted request's handler, repeats the answer of a done key, or lets the request pass. */
export function goOn(admitted: Admission, passage: Passage): void {
  if ("watch" in admitted) beginHandler(admitted.watch, passage);
  else if ("passes" in admitted) passage.next();
  else sendResponse(passage.res, admitted.response);
}

/** Begins the handler of a key's owner and holds its answer back until the key is settled, in one turn: no answer slips out. */
function beginHandler(watch: ResponseWatch, { req, res, next }: Passage): void {
  if (res.writableEnded) {
    watch.answeredBefore();
    return;
  }
  try {
    req.idempotency = watch.owned.handle;
    holdResponse(res, watch);
  } catch (error) {
    // A setter of the app on the request or response threw. After a promise Express would not see it.
    watch.giveBack();
    next(error);
    return;
  }
  watch.start(next);
}

/** Sends a whole response, unless a time-out, for example, has begun one meanwhile: that ends it too. */
function sendResponse(res: GuardResponse, { status, headers, body }: KeptAnswer): void {
  if (res.headersSent) return;
  res.statusCode = status;
  // The app's fields for all answers give way to the first answer's.
  for (const [name] of headers) res.removeHeader(name);
  for (const [name, value] of headers) res.appendHeader(name, value);
  // RFC 9110 section 8.6: none in a 204.
  if (status !== 204) res.setHeader("Content-Length", body.length);
  res.end(body);
}
