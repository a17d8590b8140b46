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
  /** `retentionMs` is for keys resolved as done; undefined means the stores' default. */
  readonly open: (target: StoreTarget, retentionMs: number | undefined) => Awaitable<OperatorStore>;
  readonly inspect: (target: StoreTarget) => Awaitable<StoreCondition>;
}

export interface OperatorStore {
  readonly idempotency: Pick<IdempotencyStore, "read" | "readReleased" | "resolve" | "reopen" | "prune"> &
    Required<Pick<IdempotencyStore, "list">>;
  /** Absent if the engine itself removes expired nonces. */
  readonly nonces: { prune(): Awaitable<number> } | undefined;
  /** False if a custom store cannot list. */
  readonly canList?: boolean;
  readonly describe?: DescribeKey | undefined;
  close(): Awaitable<void>;
}

export type KeyEntry = IdempotencyListing["entries"][number];

export type KnownRecord = IdempotencyRecord | ReleasedKey;

/** What the platform knows about a key, `amount` and `beneficiary` first; or why there is none. */
export type Described =
  | { readonly description: Readonly<Record<string, string>> | null }
  | { readonly descriptionError: string };

export type DescribeKey = (entry: KeyEntry) => Promise<Described>;
