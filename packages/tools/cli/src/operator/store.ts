import type {
  Awaitable,
  IdempotencyListing,
  IdempotencyRecord,
  IdempotencyStore,
  ReleasedKey,
} from "@countersign/idempotency";
import type { StoreCondition } from "../doctor/findings.ts";
import type { StoreTarget } from "./store-target.ts";

export interface Engine {
  /** `retentionMs` is for keys that are resolved as done; undefined for the default of the stores. */
  readonly open: (target: StoreTarget, retentionMs: number | undefined) => Awaitable<OperatorStore>;
  readonly inspect: (target: StoreTarget) => Awaitable<StoreCondition>;
}

export interface OperatorStore {
  readonly idempotency: Pick<IdempotencyStore, "read" | "readReleased" | "resolve" | "reopen" | "prune"> &
    Required<Pick<IdempotencyStore, "list">>;
  /** Absent where the engine removes by itself what has expired. */
  readonly nonces: { prune(): Awaitable<number> } | undefined;
  /** False where a store of somebody's own cannot list. */
  readonly canList?: boolean;
  readonly describe?: DescribeKey | undefined;
  close(): Awaitable<void>;
}

export type KeyEntry = IdempotencyListing["entries"][number];

/** What a store knows of a key, also of one that an operator has released. */
export type KnownRecord = IdempotencyRecord | ReleasedKey;

/** What the platform knows about a key: texts by name, `amount` and `beneficiary` first; or why there is none. */
export type Described =
  | { readonly description: Readonly<Record<string, string>> | null }
  | { readonly descriptionError: string };

export type DescribeKey = (entry: KeyEntry) => Promise<Described>;
