import { isPromiseLike } from "@countersign/core";
import { inStoreTime, storeOf } from "./key-steps.ts";
import type { KeyAttempt } from "./key-attempt.ts";
import type { ResolvedKeyOptions } from "./key-options.ts";
import { idempotencyLost, storeUnavailable } from "./refusals.ts";
import type { Awaitable, IdempotencyOwnership } from "./store.ts";

/**
 * Every throw makes the caller's transaction roll back; the next attempt finds the key as it was. `onLost` hears of a key that is
 * not this attempt's to complete.
 */
export function completeInTransaction(
  options: ResolvedKeyOptions,
  tx: unknown,
  { key, token }: KeyAttempt,
  onLost: () => void,
): Awaitable<void> {
  const { storeTimeoutMs } = options;
  let ownership: Awaitable<IdempotencyOwnership>;
  try {
    ownership = storeOf(options).completeIn?.(tx, key, token) ?? "lost";
  } catch (error) {
    throw failure(error, options);
  }
  // A synchronous transaction cannot wait: it commits, or rolls back, when the handler returns.
  if (isPromiseLike(ownership))
    return completeInLater(inStoreTime(ownership, storeTimeoutMs), options, onLost);
  assertOwned(ownership, options, onLost);
}

async function completeInLater(
  pending: Awaitable<IdempotencyOwnership>,
  options: ResolvedKeyOptions,
  onLost: () => void,
): Promise<void> {
  let ownership: IdempotencyOwnership;
  try {
    ownership = await pending;
  } catch (error) {
    throw failure(error, options);
  }
  assertOwned(ownership, options, onLost);
}

// A TypeError says that `tx` is no transaction of this store: the handler's mistake, which no retry mends.
function failure(error: unknown, { retryAfterSeconds }: ResolvedKeyOptions): unknown {
  return error instanceof TypeError ? error : storeUnavailable(error, retryAfterSeconds);
}

function assertOwned(
  ownership: IdempotencyOwnership,
  { retryAfterSeconds }: ResolvedKeyOptions,
  onLost: () => void,
): void {
  if (ownership === "ok") return;
  onLost();
  throw idempotencyLost(retryAfterSeconds);
}
