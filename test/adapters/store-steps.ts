import type { IdempotencyStore } from "@countersign/idempotency";

/** The steps of a store as an object of functions, of which a row can exchange some. */
export function steps(store: IdempotencyStore): IdempotencyStore {
  return {
    claim: (key, claim) => store.claim(key, claim),
    read: (key) => store.read(key),
    heartbeat: (key, token, leaseMs) => store.heartbeat(key, token, leaseMs),
    complete: (key, token) => store.complete(key, token),
    release: (key, token) => store.release(key, token),
    hold: (key, token, reason) => store.hold(key, token, reason),
    resolve: (key, outcome, decision) => store.resolve(key, outcome, decision),
    reopen: (key, decision) => store.reopen(key, decision),
    readReleased: (key) => store.readReleased(key),
    prune: () => store.prune(),
    close: () => store.close(),
    ...(store.retentionMs !== undefined && { retentionMs: store.retentionMs }),
  };
}
