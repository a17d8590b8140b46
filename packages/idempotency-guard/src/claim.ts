import { isPromiseLike } from "@countersign/guard";
import type { Attempt, GuardState } from "./attempt.ts";
import { callStore, inTime } from "./call-store.ts";
import { storeUnavailable } from "./refusals.ts";
import type { Awaitable, IdempotencyClaimResult } from "./store.ts";

/** Asks the store for the key; throws a GuardError (503) when it does not answer, and sees to it that no claim is left behind. */
export function claim(state: GuardState, attempt: Attempt): Awaitable<IdempotencyClaimResult> {
  const { store, leaseMs, recovery, storeTimeoutMs } = state.options;
  const { key, token, fingerprint } = attempt;
  let answer: Awaitable<IdempotencyClaimResult>;
  try {
    answer = store.claim(key, { token, fingerprint, leaseMs, recovery });
  } catch (error) {
    abandonClaim(state, attempt, undefined);
    throw storeUnavailable(error, state.options);
  }
  return isPromiseLike(answer) ? claimInTime(state, attempt, answer, storeTimeoutMs) : answer;
}

async function claimInTime(
  state: GuardState,
  attempt: Attempt,
  answer: Promise<IdempotencyClaimResult>,
  timeoutMs: number,
): Promise<IdempotencyClaimResult> {
  try {
    return await inTime(answer, timeoutMs);
  } catch (error) {
    abandonClaim(state, attempt, answer);
    throw storeUnavailable(error, state.options);
  }
}

// How often the store has to say that the key is not ours: a claim whose reply was lost may be executed after a release.
const lossesUntilSure = 3;

/**
 * I3: a claim whose answer did not arrive may have been executed, or may be yet. The token is released until the store has
 * answered the claim itself and says that nothing is left.
 */
export function abandonClaim(
  { options, retries, waiters }: GuardState,
  { key, token }: Attempt,
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
  retries.tryToRepeat(async () => {
    const answered = settled;
    const ownership = await callStore(() => options.store.release(key, token), options.storeTimeoutMs);
    if (ownership === "ok") waiters.wake(key);
    if (!answered) return false;
    losses += 1;
    return ownership === "ok" || losses >= lossesUntilSure;
  });
}
