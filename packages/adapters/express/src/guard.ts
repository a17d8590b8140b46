import { createRequestFact, isGuardError, type RequestFact } from "@countersign/core";
import { deliberate, publishThrown, requestAborted, verdicts, warnOfError } from "@countersign/core/internal";
import { isCut } from "./body.ts";
import { endWithResponse, offerBody } from "./later-body.ts";
import { replaceStatus } from "./over-http2.ts";
import { assertReceivedWhole } from "./received-request.ts";
import type { ErrorMiddleware, GuardRequest, GuardResponse, Middleware, NextFunction } from "./types.ts";
import { boundUnreadBody } from "./unread-body.ts";

/** Decides about one request: returns to let it pass, throws to refuse it. */
export type GuardFunction = (req: GuardRequest, res: GuardResponse) => void | Promise<unknown>;

/** A {@link GuardFunction} that finds something, such as the run that owns a key. */
export type FindingFunction<Found> = (req: GuardRequest, res: GuardResponse) => Promise<Found>;

export interface Ways<Found> {
  /** Called in place of `next()`, with the check's result. */
  readonly found?:
    | ((found: Found, req: GuardRequest, res: GuardResponse, next: NextFunction) => void)
    | undefined;
  /** Called in place of `next(error)`. */
  readonly refused?: ErrorMiddleware | undefined;
}

/**
 * Turns `decide` into a middleware named `<name>Middleware`. A throw or rejection reaches `next(error)` on Express 4 and 5, a return calls
 * `next()`. Refuses before `decide` if Node may have dropped header lines (431), or for two Host lines (400). Publishes a GuardEvent for
 * subscribers of `countersign:guard`; without, a refusal is a line on stderr. Drains a refused body's rest within a bound. A GuardError
 * `request-aborted` ends without an answer if the client has left. What follows reads a captured body by `req.body` or by any parser
 * ({@link offerBody}).
 */
export function guard(name: string, decide: GuardFunction): Middleware;
export function guard<Found>(name: string, decide: FindingFunction<Found>, ways: Ways<Found>): Middleware;
export function guard(name: string, decide: GuardFunction, ways: Ways<never> = {}): Middleware {
  return createGuard({ name, decide, ways, publishesPass: true });
}

/** As {@link guard}, for checks that publish verdicts by core's `Steps`: publishes only the others. */
export function composedGuard(name: string, decide: GuardFunction): Middleware;
export function composedGuard<Found>(
  name: string,
  decide: FindingFunction<Found>,
  ways: Ways<Found>,
): Middleware;
export function composedGuard(name: string, decide: GuardFunction, ways: Ways<never> = {}): Middleware {
  return createGuard({ name, decide, ways, publishesPass: false });
}

interface Guard {
  readonly name: string;
  readonly decide: GuardFunction;
  readonly ways: Ways<never>;
  readonly publishesPass: boolean;
}

function createGuard({ name, decide, ways, publishesPass }: Guard): Middleware {
  const middleware: Middleware = (req, res, next) => {
    assertNodeRequest(name, req);
    const passage = { name, req, res, next, ways, publishesPass, startedAt: verdicts.start() };
    let verdict: void | Promise<unknown>;
    try {
      expectChecks(req, res);
      assertReceivedWhole(req);
      verdict = decide(req, res);
    } catch (error) {
      refuse(passage, error);
      return;
    }
    if (verdict === undefined) pass(passage, undefined);
    else void settle(passage, verdict);
  };
  return Object.defineProperty(middleware, "name", { value: `${name}Middleware` });
}

/** Throws a TypeError for Fastify's request, which holds Node's: by its members a check could pass or refuse what was not sent. */
function assertNodeRequest(name: string, req: object): void {
  if ("rawHeaders" in req || !("raw" in req) || !("rawHeaders" in Object(req.raw))) return;
  throw new TypeError(
    `${name}Middleware got Fastify's request, and knows Express and node:http: write hook() of @countersign/fastify, ` +
      "which runs the check behind this middleware, such as payloadVerifier() of webhookHmac()",
  );
}

interface Passage {
  readonly name: string;
  readonly req: GuardRequest;
  readonly res: GuardResponse;
  readonly next: NextFunction;
  readonly ways: Ways<never>;
  readonly publishesPass: boolean;
  /** 0 without subscribers at the start. */
  readonly startedAt: number;
}

/** Never rejects. A throw inside next() must not come back as a second next(error). */
async function settle(passage: Passage, verdict: Promise<unknown>): Promise<void> {
  let found: unknown;
  try {
    try {
      found = await verdict;
    } catch (error) {
      return refuse(passage, error);
    }
    pass(passage, found);
  } catch (error) {
    failLate(passage, error);
  }
}

function pass(passage: Passage, found: unknown): void {
  const { ways, req, res, next } = passage;
  endWithResponse(req, res);
  if (passage.publishesPass) {
    try {
      offerBody(req, res);
    } catch (error) {
      refuse(passage, error);
      return;
    }
    verdicts.publish(passage, passage.startedAt, undefined);
  }
  if (ways.found === undefined) next();
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the signatures of guard() pair each check with its ways
  else ways.found(found as never, req, res, next);
}

function refuse(passage: Passage, thrown: unknown): void {
  const reason = verdicts.refusedWith(passage.name, thrown);
  verdicts.publish(passage, passage.startedAt, reason);
  const { ways, req, res, next } = passage;
  endWithResponse(req, res);
  // An app's own error of that code has a client that waits for its answer.
  if (isGuardError(reason) && reason.code === requestAborted && (isCut(req) || res.destroyed)) return;
  boundUnreadBody(req, res);
  // Of a check that runs after the claim of a key: its refusal has no effect.
  if (isGuardError(reason)) deliberate.mark(reason);
  try {
    if (ways.refused === undefined) next(reason);
    else ways.refused(reason, req, res, next);
  } finally {
    // After next(), which usually answers and may have told an onReject.
    if (passage.startedAt === 0) verdicts.writeUnreported(passage, req.method, reason);
  }
}

/** Answers 500 for a throw after a check, or cuts an answer under way: on node:http the rejection would end the process. */
function failLate({ name, req, res }: Passage, error: unknown): void {
  publishThrown(error, req);
  warnOfError(name, "caught what came after it threw", error);
  replaceOrCut(res, () => {
    for (const field of res.getHeaderNames()) res.removeHeader(field);
    replaceStatus(res, 500);
    res.end();
  });
}

/** Replaces an answer that Node refused; cuts the line if its head has left or Node refuses again. Never throws. */
export function replaceOrCut(res: GuardResponse, replace: () => void): void {
  try {
    if (!res.headersSent) return replace();
  } catch {
    // The first refusal was reported.
  }
  res.destroy();
}

/**
 * Makes one middleware, `<name>Middleware`, of several that run in order; errors go to `onError`, by default to the app. Unlike an array
 * it keeps the types of an inline handler after it. For middlewares of `guard()`: a throw instead of `next` is left to Express.
 */
export function chain(
  name: string,
  middlewares: readonly Middleware[],
  onError?: ErrorMiddleware,
): Middleware {
  const parts = [...middlewares];
  const composed: Middleware = (req, res, next) => {
    let position = 0;
    const advance: NextFunction = (error) => {
      // As Express: next(null) is no error. Handed out, it would skip the remaining parts.
      if (error) {
        if (onError === undefined) next(error);
        else onError(error, req, res, next);
        return;
      }
      const part = parts[position++];
      if (part === undefined) next();
      else part(req, res, advance);
    };
    advance();
  };
  return Object.defineProperty(composed, "name", { value: `${name}Middleware` });
}

const expected: RequestFact<true> = createRequestFact();

/**
 * Makes a request and its response ready for what its checks add to them. The first guard does it for all that follow, so that checks
 * that are mounted one by one cost no more than an endpoint made of them.
 */
function expectChecks(req: GuardRequest, res: GuardResponse): void {
  if (!copiesLayouts || expected.get(req) === true) return;
  expectManyProperties(req, "statusMessage");
  expectManyProperties(res, "sendDate");
  expected.set(req, true);
}

// V8 before 13 (Node 20 and 22) copies an object's layout for every property added after its prototype was exchanged, as Express does
// with each request and response: about 2 us and 1.5 kB a property. Not so for a dictionary.
const copiesLayouts = Number.parseInt(process.versions.v8, 10) < 13;

/**
 * Makes V8 keep `subject`'s properties in a dictionary, because several follow; only for speed. Takes the own property `present` out
 * and puts it back last; without one it does nothing.
 */
export function expectManyProperties<Name extends string>(
  subject: { [Property in Name]?: unknown },
  present: Name,
): void {
  if (!copiesLayouts) return;
  const descriptor = Object.getOwnPropertyDescriptor(subject, present);
  // An accessor or a constant is the app's own.
  if (descriptor?.writable !== true || descriptor.configurable !== true) return;
  Reflect.deleteProperty(subject, present);
  Object.defineProperty(subject, present, descriptor);
}
