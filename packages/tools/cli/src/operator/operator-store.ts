import type { Awaitable } from "@countersign/idempotency";
import { UsageError } from "../command-io.ts";
import { loadPostgres, loadRedis, loadSqlite } from "./load-engine.ts";
import { openDescribe, openModuleStore } from "./module-store.ts";
import { storeFailure } from "./store-failure.ts";
import type { StoreTarget } from "./store-options.ts";
import type { OpenOptions, OperatorStore } from "./store.ts";

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
    await failingInOneLine(target, () => store.close());
  }
}

/** Runs what asks the engine. Only faults of the command itself come out as they are. */
export async function failingInOneLine<T>({ location }: StoreTarget, ask: () => Awaitable<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    const isOurs = error instanceof TypeError && location.engine !== "module";
    if (error instanceof UsageError || isOurs) throw error;
    throw storeFailure(location, error);
  }
}

/** With what tells more about keys: a module of its own goes before that of the store. */
async function open(target: StoreTarget, options: OpenOptions): Promise<OperatorStore> {
  const described = options.describe === undefined ? undefined : await openDescribe(options.describe);
  const store = await openEngine(target, options);
  if (described === undefined) return store;
  return {
    ...store,
    describe: described.describe,
    async close() {
      await store.close();
      await described.close();
    },
  };
}

async function openEngine(target: StoreTarget, options: OpenOptions): Promise<OperatorStore> {
  const { location } = target;
  if (location.engine === "module") return openModuleStore(location);
  if (location.engine === "sqlite") return (await loadSqlite()).openSqliteStore(location, target, options);
  if (location.engine === "redis") return (await loadRedis()).openRedisStore(location, target, options);
  return (await loadPostgres()).openPostgresStore(location, target, options);
}
