import { randomUUID } from "node:crypto";
import {
  createRequestFact,
  GuardError,
  guard,
  isPromiseLike,
  markKeyClaimed,
  type Middleware,
  type RequestFact,
} from "@countersign/guard";
import type { KeyRefusal } from "./acquire.ts";
import type { Attempt, GuardState } from "./attempt.ts";
import type { DrainOptions, DrainReport } from "./drain.ts";
import { checkFingerprint, fingerprintInTime } from "./fingerprint.ts";
import { holdResponse } from "./held-response.ts";
import { checkIdempotencyKey } from "./idempotency-key.ts";
import { IdempotencyKeys } from "./idempotency-keys.ts";
import { alarm } from "./notices.ts";
import { factory, resolveOptions, type IdempotencyGuardOptions } from "./options.ts";
import type { OwnedKey } from "./owned-key.ts";
import { alreadyProcessed, clientLeft, held, inFlight } from "./refusals.ts";
import { AttemptHandle } from "./request-idempotency.ts";
import { Run } from "./run.ts";
import type { Awaitable } from "./store.ts";
import { Waiters } from "./waiters.ts";

const running: RequestFact<Run> = createRequestFact();

/** What {@link idempotencyGuard} makes. */
export interface DrainableMiddleware extends Middleware {
  /**
   * For the end of the process, when the server takes no connection any more: claims no key from here on (503, `draining`), and
   * waits until what is under way is settled and recorded. Resolves to what is left after `timeoutMs`.
   */
  drain(this: void, options?: DrainOptions): Promise<DrainReport>;
}

/**
 * Runs what follows at most once for each idempotency key: claims the key, holds the answer back until the key is recorded as
 * done, and answers 409 from then on. Any answer but a 2xx frees the key. Sets `req.idempotency`. Throws a TypeError on a
 * bad option.
 */
export function idempotencyGuard(options: IdempotencyGuardOptions): DrainableMiddleware {
  const resolved = resolveOptions(options);
  const waiters = new Waiters(resolved);
  const keys = new IdempotencyKeys({ ...resolved, onSettled: (key) => waiters.wake(key) });
  const state: GuardState = { options: resolved, keys, waiters };
  const claimKey = guard(factory, (req, res) => {
    if (running.get(req) !== undefined) throw mountedTwice();
    const key = checkIdempotencyKey(resolved.key(req), resolved.scope);
    const fingerprint = resolved.fingerprint(req);
    const begin = (checked: string): Awaitable<void> =>
      enter(state, { req, res, key, fingerprint: checked, token: randomUUID() });
    return isPromiseLike(fingerprint)
      ? enterLater(fingerprintInTime(fingerprint, resolved), begin)
      : begin(checkFingerprint(fingerprint));
  });
  const middleware: Middleware = (req, res, next) =>
    claimKey(req, res, (error) => {
      const run = error === undefined ? running.get(req) : undefined;
      if (run === undefined) next(error);
      else run.start(next);
    });
  Object.defineProperty(middleware, "name", { value: claimKey.name });
  return Object.assign(middleware, { drain: (drainOptions?: DrainOptions) => keys.drain(drainOptions) });
}

async function enterLater(
  fingerprint: Promise<string>,
  begin: (checked: string) => Awaitable<void>,
): Promise<void> {
  await begin(checkFingerprint(await fingerprint));
}

/** Claims the key and goes by the answer. `waitUntilMs` is set from the first wait on. */
function enter(state: GuardState, attempt: Attempt, waitUntilMs?: number): Awaitable<void> {
  const acquired = state.keys.acquire(attempt);
  return isPromiseLike(acquired)
    ? admitLater(state, attempt, acquired, waitUntilMs)
    : admit(state, attempt, acquired, waitUntilMs);
}

async function admitLater(
  state: GuardState,
  attempt: Attempt,
  acquired: Promise<OwnedKey | KeyRefusal>,
  waitUntilMs: number | undefined,
): Promise<void> {
  await admit(state, attempt, await acquired, waitUntilMs);
}

function admit(
  state: GuardState,
  attempt: Attempt,
  result: OwnedKey | KeyRefusal,
  waitUntilMs: number | undefined,
): Awaitable<void> {
  switch (result.status) {
    case "acquired":
      own(state, attempt, result);
      return;
    case "done":
      throw alreadyProcessed(attempt, result.fingerprint, state.options);
    case "held":
      throw held(attempt, result, state.options);
    case "in-flight":
      return wait(state, attempt, waitUntilMs ?? performance.now() + state.options.waitMs);
  }
}

async function wait(state: GuardState, attempt: Attempt, waitUntilMs: number): Promise<void> {
  const { key, res } = attempt;
  const outcome = await state.waiters.wait(key, res, waitUntilMs - performance.now());
  if (outcome === "client-left") throw clientLeft();
  if (outcome === "timeout") throw inFlight(state.options);
  if (outcome === "claim") await enter(state, attempt, waitUntilMs);
  else if (outcome.state === "held") throw held(attempt, outcome, state.options);
  else throw alreadyProcessed(attempt, outcome.fingerprint, state.options);
}

function own(state: GuardState, attempt: Attempt, owned: OwnedKey): void {
  const { req, res, key } = attempt;
  const run = new Run(attempt, owned, state.options.recovery);
  const unsendable = (error: unknown): void => {
    const message = "has an answer that could not be sent";
    alarm(factory, { code: "answer-unsendable", key, message, req, error });
  };
  running.set(req, run);
  markKeyClaimed(req);
  req.idempotency = new AttemptHandle(attempt, run);
  holdResponse(res, run, unsendable);
}

function mountedTwice(): GuardError {
  return new GuardError({
    status: 500,
    code: "idempotency-guard-twice",
    message: "idempotencyGuard() runs twice for one request: mount it once on each route",
  });
}
