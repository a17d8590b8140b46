import { randomUUID } from "node:crypto";
import {
  createRequestFact,
  GuardError,
  guard,
  isPromiseLike,
  type Middleware,
  type RequestFact,
} from "@countersign/guard";
import type { Attempt, GuardState } from "./attempt.ts";
import { abandonClaim, claim } from "./claim.ts";
import { checkFingerprint } from "./fingerprint.ts";
import { holdResponse } from "./held-response.ts";
import { checkIdempotencyKey } from "./idempotency-key.ts";
import { Heartbeats, Lease } from "./lease.ts";
import { alarm } from "./notices.ts";
import { factory, resolveOptions, type IdempotencyGuardOptions } from "./options.ts";
import { alreadyProcessed, clientLeft, held, inFlight, storeUnavailable } from "./refusals.ts";
import { AttemptHandle, type Intent, type RequestIdempotency } from "./request-idempotency.ts";
import { Retries } from "./retries.ts";
import { Run } from "./run.ts";
import type { Awaitable, IdempotencyClaimResult } from "./store.ts";
import { Waiters } from "./waiters.ts";

const admitted: RequestFact<RequestIdempotency> = createRequestFact();

/**
 * Runs what follows at most once for each idempotency key: claims the key, holds the answer back until the key is recorded as
 * done, and answers 409 from then on. Any answer but a 2xx frees the key. Sets `req.idempotency`. Throws a TypeError on a
 * bad option.
 */
export function idempotencyGuard(options: IdempotencyGuardOptions): Middleware {
  const resolved = resolveOptions(options);
  const state: GuardState = {
    options: resolved,
    heartbeats: new Heartbeats(resolved.leaseMs),
    retries: new Retries(),
    waiters: new Waiters(resolved),
  };
  return guard(factory, (req, res) => {
    if (admitted.get(req) !== undefined) throw mountedTwice();
    const key = checkIdempotencyKey(resolved.key(req));
    const fingerprint = resolved.fingerprint(req);
    const begin = (checked: string): Awaitable<void> =>
      enter(state, { req, res, key, fingerprint: checked, token: randomUUID() });
    return isPromiseLike(fingerprint) ? enterLater(fingerprint, begin) : begin(checkFingerprint(fingerprint));
  });
}

async function enterLater(
  fingerprint: Promise<string>,
  begin: (checked: string) => Awaitable<void>,
): Promise<void> {
  await begin(checkFingerprint(await fingerprint));
}

/** Claims the key and goes by the answer. `waitUntilMs` is set from the first wait on. */
function enter(state: GuardState, attempt: Attempt, waitUntilMs?: number): Awaitable<void> {
  const claimedAtMs = performance.now();
  const answer = claim(state, attempt);
  return isPromiseLike(answer)
    ? admitLater(state, attempt, answer, { claimedAtMs, waitUntilMs })
    : admit(state, attempt, answer, { claimedAtMs, waitUntilMs });
}

interface Times {
  readonly claimedAtMs: number;
  readonly waitUntilMs: number | undefined;
}

async function admitLater(
  state: GuardState,
  attempt: Attempt,
  answer: Promise<IdempotencyClaimResult>,
  times: Times,
): Promise<void> {
  await admit(state, attempt, await answer, times);
}

function admit(
  state: GuardState,
  attempt: Attempt,
  result: IdempotencyClaimResult,
  { claimedAtMs, waitUntilMs }: Times,
): Awaitable<void> {
  switch (result.status) {
    case "acquired":
      own(state, attempt, claimedAtMs, result.fence);
      return;
    case "done":
      throw alreadyProcessed(attempt, result.fingerprint, state.options);
    case "held":
      throw held(attempt, result, state.options);
    case "in-flight":
      return wait(state, attempt, waitUntilMs ?? performance.now() + state.options.waitMs);
    default:
      throw storeUnavailable(new TypeError("the store gave no known answer to a claim"), state.options);
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

function own(state: GuardState, attempt: Attempt, claimedAtMs: number, fence: number): void {
  const { options, heartbeats } = state;
  // A process that slept between the claim and this line may have been replaced as the owner.
  if (performance.now() - claimedAtMs >= options.leaseMs) {
    abandonClaim(state, attempt, undefined);
    throw storeUnavailable(new Error("the lease ended before the handler could begin"), options);
  }
  const { req, res, key } = attempt;
  const lease = new Lease(attempt, options, claimedAtMs);
  const intent: Intent = { inTransaction: false, holdReason: undefined, responseEnded: false };
  const run = new Run(state, attempt, lease, intent);
  const unsendable = (error: unknown): void => {
    alarm({ code: "answer-unsendable", key, message: "has an answer that could not be sent", req, error });
  };
  const handle = new AttemptHandle(attempt, fence, { lease, intent, options });
  admitted.set(req, handle);
  req.idempotency = handle;
  heartbeats.add(lease);
  holdResponse(res, (status) => run.settle(status), unsendable);
}

function mountedTwice(): GuardError {
  return new GuardError({
    status: 500,
    code: "idempotency-guard-twice",
    message: "idempotencyGuard() runs twice for one request: mount it once on each route",
  });
}
