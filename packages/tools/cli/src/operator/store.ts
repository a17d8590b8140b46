import type { Awaitable, IdempotencyStore } from "@countersign/idempotency";
import type { DescribeKey } from "./describe-key.ts";

/** The stores of a platform as an operator's command uses them. */
export interface OperatorStore {
  readonly idempotency: Pick<IdempotencyStore, "read" | "readReleased" | "resolve" | "reopen" | "prune"> &
    Required<Pick<IdempotencyStore, "list">>;
  /** Absent where the engine removes by itself what has expired. */
  readonly nonces: { prune(): Awaitable<number> } | undefined;
  /** False where a store of somebody's own cannot list. */
  readonly canList?: boolean;
  /** Where the platform tells more about its keys. */
  readonly describe?: DescribeKey | undefined;
  close(): Awaitable<void>;
}

/** How a store is opened. */
export interface OpenOptions {
  /** How long a key is remembered that is resolved as done; undefined for the default of the stores. */
  readonly retentionMs?: number | undefined;
  /** A module that exports `describe`. */
  readonly describe?: string | undefined;
}
