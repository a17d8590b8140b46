import type {
  IdempotencyClaim,
  IdempotencyClaimResult,
  IdempotencyDecision,
  IdempotencyListing,
  IdempotencyListQuery,
  IdempotencyOwnership,
  IdempotencyRecord,
  IdempotencyStore,
  ReleasedKey,
} from "../store.ts";

export interface RemoteIdempotencyStore<Tx = never> extends IdempotencyStore<Tx> {
  readonly retentionMs: number;
  claim(key: string, claim: IdempotencyClaim): Promise<IdempotencyClaimResult>;
  read(key: string): Promise<IdempotencyRecord | undefined>;
  heartbeat(key: string, token: string, leaseMs: number): Promise<IdempotencyOwnership>;
  complete(key: string, token: string): Promise<IdempotencyOwnership>;
  release(key: string, token: string): Promise<IdempotencyOwnership>;
  hold(key: string, token: string, reason: string): Promise<IdempotencyOwnership>;
  resolve(
    key: string,
    outcome: "done" | "released",
    decision: IdempotencyDecision,
  ): Promise<"ok" | "not-held">;
  reopen(key: string, decision: IdempotencyDecision): Promise<"ok" | "not-decided">;
  readReleased(key: string): Promise<ReleasedKey | undefined>;
  list(query: IdempotencyListQuery): Promise<IdempotencyListing>;
  prune(): Promise<number>;
  /** Ends the store's own work; the caller's connection stays open. Later calls throw. */
  close(): void;
}
