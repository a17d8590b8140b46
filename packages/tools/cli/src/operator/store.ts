import type {
  Awaitable,
  IdempotencyListing,
  IdempotencyRecord,
  IdempotencyStore,
  ReleasedKey,
} from "@countersign/idempotency";
import type { WorkStore } from "@countersign/idempotency/work";
import type { Texts } from "../command-io.ts";
import type { StoreCondition } from "../doctor/findings.ts";
import type { StoreTarget } from "./store-target.ts";

/** For how long the store remembers keys that are resolved as done, and discarded tasks; undefined means the stores' default. */
export interface Remembered {
  readonly retentionMs?: number | undefined;
  readonly taskRetentionMs?: number | undefined;
}

export interface Engine {
  readonly open: (target: StoreTarget, remembered: Remembered) => Awaitable<OperatorStore>;
  readonly inspect: (target: StoreTarget) => Awaitable<StoreCondition>;
  /** The migration's SQL. Throws a UsageError on a bad name. */
  readonly tables?: (names: Texts<"schema" | "table">) => string;
  /** Creates the tables or brings them up to date, however long it takes. */
  readonly migrate?: (target: StoreTarget) => Promise<Migration>;
}

interface Migration {
  readonly version: number;
  /** The schema version before; null if there were no tables. Each of several concurrent migrations may report null. */
  readonly before: number | null;
  /** The tables that were missing among them. */
  readonly created: readonly string[];
}

export interface OperatorStore {
  readonly idempotency: Pick<
    IdempotencyStore,
    "claim" | "hold" | "read" | "readReleased" | "resolve" | "reopen" | "prune"
  > &
    Required<Pick<IdempotencyStore, "list">>;
  /** Absent if the engine itself removes expired nonces. */
  readonly nonces: { prune(): Awaitable<number> } | undefined;
  /** Absent if the engine keeps no tasks. */
  readonly work?: OperatorWork | undefined;
  /** False if a custom store cannot list. */
  readonly canList?: boolean;
  readonly describe?: DescribeKey | undefined;
  /** Other schemas or prefixes of the same database that have such tables. */
  readonly elsewhere?: (() => Promise<readonly string[]>) | undefined;
  close(): Awaitable<void>;
}

/** What an operator may do with tasks. None of it runs one. */
export type OperatorWork = Pick<
  WorkStore<never>,
  "summaries" | "read" | "list" | "retry" | "discard" | "pause" | "resume" | "prune"
>;

export type KeyEntry = IdempotencyListing["entries"][number];

export type KnownRecord = IdempotencyRecord | ReleasedKey;

/** What the platform knows about a key, `amount` and `beneficiary` first; or why there is none. */
export type Described =
  | { readonly description: Readonly<Record<string, string>> | null }
  | { readonly descriptionError: string };

export type DescribeKey = (entry: KeyEntry) => Promise<Described>;
