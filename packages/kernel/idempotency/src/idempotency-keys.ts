import { setTimeout as sleep } from "node:timers/promises";
import { traces, type PublishedEvents } from "@countersign/core";
import { escapeForLog, option, readOptions, traced, type OptionTable } from "@countersign/core/internal";
import { AttemptStore, readRecord, Retries, stepsOf } from "./attempt-store.ts";
import { resolveKeyOptions, type IdempotencyKeysOptions, type ResolvedKeyOptions } from "./key-options.ts";
import { Heartbeats } from "./lease.ts";
import { alarm, failure, notice, type KeyNotice } from "./notices.ts";
import { OwnedKey, type ClaimedKey, type OwnerState } from "./owned-key.ts";
import type { KeyAttempt, KeyRefusal } from "./perform.ts";
import { keysDraining, storeUnavailable } from "./refusals.ts";
import type { IdempotencyClaimResult, IdempotencyRecord } from "./store.ts";

const drainTable: OptionTable<DrainOptions> = {
  timeoutMs: option.integer({ min: 1, max: 3_600_000, fallback: 10_000 }),
};

/**
 * Owns keys of an idempotency store for any receiver: leases with heartbeats, claims whose answer was lost, completion and release that
 * are repeated. For authors of receivers. Throws a TypeError on a bad option.
 */
export function idempotencyKeys(options: IdempotencyKeysOptions): IdempotencyKeys {
  return new IdempotencyKeys(resolveKeyOptions(options));
}

/** Made by {@link idempotencyKeys}. */
export class IdempotencyKeys {
  readonly #state: OwnerState;

  constructor(options: ResolvedKeyOptions) {
    this.#state = {
      options,
      steps: stepsOf(options),
      heartbeats: new Heartbeats(options.leaseMs),
      retries: new Retries(),
      inDoubt: { status: 503, retryAfterSeconds: options.retryAfterSeconds },
      ownedKeys: 0,
      draining: false,
    };
  }

  /**
   * Claims the key: owned (`acquired`), or who has it. Settle an owned key with exactly one of complete(), release() and hold(); its lease
   * is renewed until then. Throws a GuardError (503, `idempotency-store-unavailable`) when the store is silent, and gives the claim back.
   * `onLost` is called when another attempt may own the key while this one runs.
   */
  acquire(attempt: KeyAttempt, onLost?: () => void): Promise<OwnedKey | KeyRefusal> {
    return traces.claim.hasSubscribers
      ? acquireTraced(this.#state, attempt, onLost)
      : acquire(this.#state, attempt, onLost);
  }

  /** Throws a GuardError (503, `draining`) once the process drains. */
  assertNotDraining(): void {
    assertNotDraining(this.#state);
  }

  /**
   * Drains a process that is about to end: refuses new claims (503, `draining`) and waits until every owned key is settled
   * and recorded, repeating refused steps at once and often. Resolves to what is left after `timeoutMs` (1 to 3,600,000, default 10,000);
   * recovery takes over what still runs. Rejects with a TypeError on another time-out. Keeps the process alive meanwhile.
   */
  async drain(options: DrainOptions = {}): Promise<DrainReport> {
    return drain(this.#state, readDrainTimeout(options, this.#state.options.factory));
  }

  /** Reads a key's record; rejects with the store's error, or when the store is late. */
  read(key: string): Promise<IdempotencyRecord | undefined> {
    return readRecord(this.#state.options.store, this.#state.steps.read, key);
  }

  /** Publishes on `countersign:notice` what an operator may want to know of a key. */
  notice(event: KeyNotice): void {
    notice(this.#state.options.factory, event);
  }

  /** As {@link notice}; without subscribers one line on stderr. */
  failure(event: KeyNotice): void {
    failure(this.#state.options.factory, event);
  }

  /** As {@link notice}, for what may concern money; without subscribers a process warning. */
  alarm(event: KeyNotice): void {
    alarm(this.#state.options.factory, event);
  }
}

export interface DrainOptions {
  /** In milliseconds. Default 10,000. */
  readonly timeoutMs?: number | undefined;
}

/** Reads the options of a drain(). Throws an OptionError. */
export function readDrainTimeout(options: DrainOptions = {}, factory = "drain"): number {
  return readOptions(`${factory}: drain`, drainTable, options).timeoutMs;
}

/** What `drain()` could not settle in time; all 0 when everything was. */
export interface DrainReport {
  /** Owned keys: their handlers still run, or the store did not take their record. */
  readonly keys: number;
  /** Claims whose answer was lost and that could not be given back. */
  readonly claims: number;
}

const pauseMs = 50;

async function drain(state: OwnerState, timeoutMs: number): Promise<DrainReport> {
  state.draining = true;
  const endsAtMs = performance.now() + timeoutMs;
  for (;;) {
    const left = { keys: state.ownedKeys, claims: state.retries.claims };
    if (left.keys + left.claims === 0 || performance.now() >= endsAtMs) return left;
    state.retries.hurry();
    // oxlint-disable-next-line no-await-in-loop -- polling, for a few seconds at the end of a process
    await sleep(pauseMs);
  }
}

async function acquireTraced(
  state: OwnerState,
  attempt: KeyAttempt,
  onLost: (() => void) | undefined,
): Promise<OwnedKey | KeyRefusal> {
  const { key, req } = attempt;
  const context: PublishedEvents["claim"] = {
    guard: state.options.factory,
    key: escapeForLog(key, 256),
    req,
  };
  const work = (): Promise<OwnedKey | KeyRefusal> => acquire(state, attempt, onLost);
  return traced(traces.claim, context, { work, outcomeOf: ({ status }) => status });
}

function assertNotDraining({ draining, options }: OwnerState): void {
  if (draining) throw keysDraining(options.retryAfterSeconds);
}

/** Throws a GuardError (503) for a silent store, and gives the claim back; without room for that it sends no claim. */
async function acquire(
  state: OwnerState,
  attempt: KeyAttempt,
  onLost: (() => void) | undefined,
): Promise<OwnedKey | KeyRefusal> {
  const { retryAfterSeconds } = state.options;
  // Both in the turn of the call: a drain that begins now counts this claim, or there is none.
  assertNotDraining(state);
  if (!state.retries.reserveClaim()) {
    const cause = new Error("too many claims wait for the store's answer, or to be given back to it");
    throw storeUnavailable(cause, retryAfterSeconds);
  }
  const store = new AttemptStore(state, attempt);
  const claimedAtMs = performance.now();
  let result: IdempotencyClaimResult;
  try {
    result = await store.claim();
  } catch (error) {
    abandonClaim(state, store, store.claimUnderWay);
    throw error;
  }
  return admit(state, { store, claimedAtMs, onLost }, result);
}

function admit(
  state: OwnerState,
  claimed: ClaimedKey,
  // An app's own store may return anything.
  result: IdempotencyClaimResult | null | undefined,
): OwnedKey | KeyRefusal {
  const { store, claimedAtMs } = claimed;
  const { leaseMs, retryAfterSeconds } = state.options;
  switch (result?.status) {
    case "done":
    case "held":
    case "in-flight":
      state.retries.claimAnswered();
      return result;
    case "acquired":
      // A process that slept since the claim may have lost the key to another owner.
      if (performance.now() - claimedAtMs < leaseMs) {
        state.retries.claimAnswered();
        return OwnedKey.begin(state, claimed, result.fence);
      }
      abandonClaim(state, store, undefined);
      throw storeUnavailable(new Error("the lease ended before the handler could begin"), retryAfterSeconds);
    default:
      abandonClaim(state, store, undefined);
      throw storeUnavailable(new TypeError("the store gave no known answer to a claim"), retryAfterSeconds);
  }
}

// How often the store must say that the key is not ours, with growing pauses, three seconds in all (1.3 under the shortest lease): a
// claim whose reply was lost may run after a release, when the lock it waited for is free.
const lossesUntilSure = 6;

// A later answer never comes: a driver has lost it, and its claim must not keep its place for ever.
const answerLostAfterMs = 3_600_000;

/**
 * I3, I13: a claim without an answer may have run, or run later. The token is released until the store has answered the claim and says
 * that nothing is left, and once more after a lease: a driver's own time-out answers a claim that a stalled line may still deliver.
 */
function abandonClaim(state: OwnerState, store: AttemptStore, underWay: Promise<unknown> | undefined): void {
  // If the store threw at once, nothing is under way: one answer is enough.
  let answered = underWay === undefined;
  const lostAtMs = performance.now() + answerLostAfterMs;
  let losses = answered ? lossesUntilSure - 1 : 0;
  const noteAnswer = (): void => {
    answered = true;
  };
  // oxlint-disable-next-line promise/prefer-await-to-then -- nobody waits for it
  underWay?.then(noteAnswer, noteAnswer);
  const giveBack = async (): Promise<boolean> => {
    const isGivenBack = (await store.giveBack()) === "ok";
    if (isGivenBack) state.options.onSettled?.(store.attempt.key);
    return isGivenBack;
  };
  const { leaseMs } = state.options;
  // A third of the lease, so that a claim that arrives in between is released before its lease ends.
  state.retries.giveBackClaim(leaseMs / 3, async () => {
    const isAnswered = answered || performance.now() >= lostAtMs;
    const isGivenBack = await giveBack();
    if (!isAnswered) return false;
    if (isGivenBack) return true;
    losses += 1;
    if (losses < lossesUntilSure) return false;
    if (underWay !== undefined) state.retries.repeatLater(leaseMs, async () => (await giveBack(), true));
    return true;
  });
}
