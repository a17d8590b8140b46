import type { Awaitable, IdempotencyStore } from "@countersign/idempotency";

/** The stores of a platform as an operator's command uses them. */
export interface OperatorStore {
  readonly idempotency: Pick<IdempotencyStore, "read" | "resolve" | "prune"> &
    Required<Pick<IdempotencyStore, "list">>;
  /** Absent where the engine removes by itself what has expired. */
  readonly nonces: { prune(): Awaitable<number> } | undefined;
  close(): Awaitable<void>;
}

/** How long a key is remembered that is resolved as done; undefined for the default of the stores. */
export interface OpenOptions {
  readonly retentionMs?: number | undefined;
}
