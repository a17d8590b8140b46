// The stores in memory, as a user of the kit would hand them to it.
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import type { StoreHarnesses } from "@countersign/store-contract";
import { fillKeys, fillNonces } from "./fill.ts";

const room = 300;

/** The injected clock of a store, where it has one. */
export type Clock = { readonly now?: () => number; readonly advance?: (ms: number) => void };

/** A clock that stands still until it is told. */
export function testClock(): Required<Clock> {
  let nowMs = 1_800_000_000_000;
  return { now: () => nowMs, advance: (ms) => void (nowMs += ms) };
}

export function memoryHarness({ now, advance }: Clock = {}): StoreHarnesses["idempotency"] {
  const store = memoryIdempotencyStore({ max: room, ...(now && { now }) });
  return {
    store,
    ...(advance && { advance }),
    fill: () => fillKeys(store),
    close: () => store.close(),
  };
}

export function memoryNonceHarness({ now, advance }: Clock = {}): StoreHarnesses["nonces"] {
  const store = memoryNonceStore({ max: room, ...(now && { now }) });
  return { store, ...(advance && { advance }), fill: () => fillNonces(store), close() {} };
}
