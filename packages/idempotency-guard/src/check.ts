import { randomUUID } from "node:crypto";
import {
  createRequestFact,
  GuardError,
  markKeyClaimed,
  type OptionOwner,
  type RequestFact,
} from "@countersign/core";
import {
  IdempotencyKeys,
  Waiters,
  type DrainOptions,
  type DrainReport,
  type OwnedKey,
} from "@countersign/idempotency";
import type { IdempotencyGuardCode } from "./codes.ts";
import { OwnedRun, type Attempt, type GuardState } from "./run.ts";
import { checkFingerprint, checkIdempotencyKey, fingerprintInTime } from "./idempotency-key.ts";
import { factory, resolveOptions, type IdempotencyGuardOptions } from "./options.ts";
import { alreadyProcessed, clientLeft, held, inFlight } from "./refusals.ts";

/** Does `work` with a signal that aborts when the client leaves meanwhile, or has left. A door's way to know. */
export type WhileConnected = <T>(work: (left: AbortSignal) => Promise<T>) => Promise<T>;

/** Owns idempotency keys on behalf of requests. `Native` is the request of a framework. Made by {@link keyOwner}. */
export interface KeyOwner<Native> {
  /**
   * Claims the key of a request, or waits for its first attempt. Rejects with a GuardError: 409 for a key that is done, 503 for one
   * that runs or is held, or when the store does not tell, 400 for what is no key. What it resolves to owns the key: start the
   * handler by it, keep the answer back, settle it by the status of the answer, and let out what settle() says.
   */
  own(this: void, native: Native, whileConnected: WhileConnected): Promise<OwnedRun>;
  /**
   * For the end of the process, when the server takes no connection any more: claims no key from here on (503, `draining`), and
   * waits until what is under way is settled and recorded. Resolves to what is left after `timeoutMs`.
   */
  drain(this: void, options?: DrainOptions): Promise<DrainReport>;
}

const owners: RequestFact<OwnedRun> = createRequestFact();

/** The run that owns the key of this very request. */
export function runOf(subject: object): OwnedRun | undefined {
  return owners.get(subject);
}

/** Throws an OptionError on a bad option; `owner` is who it says has it. */
export function keyOwner<Native extends object>(
  options: IdempotencyGuardOptions<Native>,
  owner: OptionOwner = factory,
): KeyOwner<Native> {
  const resolved = resolveOptions(options, owner);
  const waiters = new Waiters(resolved);
  const keys = new IdempotencyKeys({ ...resolved, onSettled: (key) => waiters.wake(key) });
  const state: GuardState = { options: resolved, keys, waiters };
  return {
    async own(native, whileConnected) {
      if (owners.get(native) !== undefined) throw claimedTwice();
      const key = checkIdempotencyKey(resolved.key(native), resolved.scope);
      const fingerprint = checkFingerprint(await fingerprintInTime(resolved.fingerprint(native), resolved));
      const attempt: Attempt = { key, fingerprint, token: randomUUID(), req: native };
      const owned = await claim(state, attempt, whileConnected);
      const run = new OwnedRun(state, attempt, owned);
      owners.set(native, run);
      markKeyClaimed(native);
      return run;
    },
    drain: (drainOptions) => keys.drain(drainOptions),
  };
}

/** Claims the key and goes by the answer: again when it was freed for one who waited. */
async function claim(state: GuardState, attempt: Attempt, whileConnected: WhileConnected): Promise<OwnedKey> {
  const { keys, waiters, options } = state;
  let waitUntilMs: number | undefined;
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- one claim after the other, each behind a wait
    const result = await keys.acquire(attempt);
    if (result.status === "acquired") return result;
    if (result.status === "done") throw alreadyProcessed(state, attempt, result.fingerprint);
    if (result.status === "held") throw held(state, attempt, result);
    waitUntilMs ??= performance.now() + options.waitMs;
    const leftMs = waitUntilMs - performance.now();
    // oxlint-disable-next-line no-await-in-loop -- see above
    const outcome = await whileConnected(async (left) => waiters.wait(attempt.key, left, leftMs));
    if (outcome === "client-left") throw clientLeft();
    if (outcome === "timeout") throw inFlight(state);
    if (outcome === "claim") continue;
    if (outcome.state === "held") throw held(state, attempt, outcome);
    throw alreadyProcessed(state, attempt, outcome.fingerprint);
  }
}

function claimedTwice(): GuardError<IdempotencyGuardCode> {
  return new GuardError<IdempotencyGuardCode>({
    status: 500,
    code: "idempotency-guard-twice",
    message: "idempotencyGuard() runs twice for one request: mount it once on each route",
  });
}
