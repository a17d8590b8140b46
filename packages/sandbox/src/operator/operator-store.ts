import type { Awaitable, IdempotencyStore } from "@countersign/idempotency-guard";
import { UsageError } from "../command-io.ts";
import { openSqliteStore } from "./sqlite-store.ts";
import { storeFailure } from "./store-failure.ts";
import type { StoreTarget } from "./store-options.ts";

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

/**
 * Opens the store, works on it, and closes it again, whatever happens. Throws a UsageError for what the command line names
 * wrongly, and a StoreFailure for all that the engine refuses.
 */
export async function withOperatorStore<T>(
  target: StoreTarget,
  options: OpenOptions,
  work: (store: OperatorStore) => Promise<T>,
): Promise<T> {
  const store = await failingInOneLine(target, () => open(target, options));
  try {
    return await failingInOneLine(target, () => work(store));
  } finally {
    await store.close();
  }
}

/** Runs what asks the engine. Only faults of the command itself come out as they are. */
export async function failingInOneLine<T>({ location }: StoreTarget, ask: () => Awaitable<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof UsageError || error instanceof TypeError) throw error;
    throw storeFailure(location, error);
  }
}

// Each engine's store is loaded when it is needed: a command line of one engine does not wait for the others.
async function open(target: StoreTarget, options: OpenOptions): Promise<OperatorStore> {
  const { location } = target;
  if (location.engine === "sqlite") return openSqliteStore(location, target, options);
  if (location.engine === "postgres") {
    const { openPostgresStore } = await import("./postgres-store.ts");
    return openPostgresStore(location, target, options);
  }
  const { openRedisStore } = await import("./redis-store.ts");
  return openRedisStore(location, target, options);
}
