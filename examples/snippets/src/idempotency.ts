import { randomUUID } from "node:crypto";
import {
  idempotencyKeys,
  memoryIdempotencyStore,
} from "@countersign/idempotency";

// For one process on a laptop: in production give a durable store, shared by
// all consumers of the queue.
const keys = idempotencyKeys({
  factory: "payOnce",
  store: memoryIdempotencyStore(),
});

/**
 * Pays a queue's order at most once. Whether the message may leave the queue;
 * where this throws, it may not.
 */
export async function payOnce(
  order: { readonly id: string; readonly digest: string },
  pay: (signal: AbortSignal) => Promise<void>,
): Promise<boolean> {
  const owned = await keys.acquire({
    key: order.id,
    fingerprint: order.digest,
    token: randomUUID(),
  });
  if (owned.status !== "acquired") return owned.status === "done";
  try {
    // Begins nothing any more once the signal has aborted.
    await pay(owned.signal);
  } catch (error) {
    // An operator decides; release() frees the key for the next attempt.
    await owned.hold("the bank may have paid");
    throw error;
  }
  return (await owned.complete()) === undefined;
}
