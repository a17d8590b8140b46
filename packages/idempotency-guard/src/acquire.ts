import { isPromiseLike } from "@countersign/guard";
import { inTime } from "./call-store.ts";
import type { KeyAttempt, KeyState } from "./key-attempt.ts";
import { KeySteps } from "./key-steps.ts";
import { OwnedKey } from "./owned-key.ts";
import { keysDraining, storeUnavailable } from "./refusals.ts";
import type { Awaitable, IdempotencyClaimResult } from "./store.ts";

/** Why a key was not acquired. */
export type KeyRefusal = Exclude<IdempotencyClaimResult, { readonly status: "acquired" }>;

/**
 * Asks the store for the key; throws a GuardError (503) when it does not answer, and sees to it that no claim is left behind: one
 * for whose return there is no room is not sent.
 */
export function acquire(state: KeyState, attempt: KeyAttempt): Awaitable<OwnedKey | KeyRefusal> {
  const { store, leaseMs, recovery, retryAfterSeconds } = state.options;
  const { key, token, fingerprint } = attempt;
  if (state.draining) throw keysDraining(retryAfterSeconds);
  if (!state.retries.reserveClaim()) {
    const cause = new Error("too many claims wait for the store's answer, or to be given back to it");
    throw storeUnavailable(cause, retryAfterSeconds);
  }
  const claimedAtMs = performance.now();
  let answer: Awaitable<IdempotencyClaimResult>;
  try {
    answer = store.claim(key, { token, fingerprint, leaseMs, recovery });
  } catch (error) {
    abandonClaim(state, attempt, undefined);
    throw storeUnavailable(error, retryAfterSeconds);
  }
  return isPromiseLike(answer)
    ? acquireInTime(state, attempt, answer, claimedAtMs)
    : admit(state, attempt, answer, claimedAtMs);
}

async function acquireInTime(
  state: KeyState,
  attempt: KeyAttempt,
  answer: Promise<IdempotencyClaimResult>,
  claimedAtMs: number,
): Promise<OwnedKey | KeyRefusal> {
  let result: IdempotencyClaimResult;
  try {
    result = await inTime(answer, state.options.storeTimeoutMs);
  } catch (error) {
    abandonClaim(state, attempt, answer);
    throw storeUnavailable(error, state.options.retryAfterSeconds);
  }
  return admit(state, attempt, result, claimedAtMs);
}

function admit(
  state: KeyState,
  attempt: KeyAttempt,
  // A store of somebody else may give anything.
  result: IdempotencyClaimResult | null | undefined,
  claimedAtMs: number,
): OwnedKey | KeyRefusal {
  const { leaseMs, retryAfterSeconds } = state.options;
  switch (result?.status) {
    case "done":
    case "held":
    case "in-flight":
      state.retries.claimAnswered();
      return result;
    case "acquired":
      // A process that slept between the claim and this line may have been replaced as the owner.
      if (performance.now() - claimedAtMs < leaseMs) {
        state.retries.claimAnswered();
        return OwnedKey.begin(state, attempt, result.fence, claimedAtMs);
      }
      abandonClaim(state, attempt, undefined);
      throw storeUnavailable(new Error("the lease ended before the handler could begin"), retryAfterSeconds);
    default:
      abandonClaim(state, attempt, undefined);
      throw storeUnavailable(new TypeError("the store gave no known answer to a claim"), retryAfterSeconds);
  }
}

// How often the store has to say that the key is not ours: a claim whose reply was lost may be executed after a release.
const lossesUntilSure = 3;

/**
 * I3: a claim whose answer did not arrive may have been executed, or may be yet. The token is released until the store has
 * answered the claim itself and says that nothing is left.
 */
function abandonClaim(
  state: KeyState,
  attempt: KeyAttempt,
  answer: Promise<IdempotencyClaimResult> | undefined,
): void {
  // A store that threw at once has nothing under way: one answer is enough.
  let settled = answer === undefined;
  let losses = settled ? lossesUntilSure - 1 : 0;
  const settle = (): void => {
    settled = true;
  };
  // oxlint-disable-next-line promise/prefer-await-to-then -- nobody waits for it
  answer?.then(settle, settle);
  const steps = new KeySteps(state.options, attempt);
  state.retries.giveBackClaim(async () => {
    const answered = settled;
    const isGivenBack = (await steps.giveBack()) === "ok";
    if (isGivenBack) state.options.onSettled(attempt.key);
    if (!answered) return false;
    losses += 1;
    return isGivenBack || losses >= lossesUntilSure;
  });
}
