import type { Awaitable } from "@countersign/idempotency";
import { UsageError } from "../command-io.ts";
import type { StoreCondition } from "../doctor/findings.ts";
import { loadDriver } from "../load-package.ts";
import { moduleEngine } from "./module-store.ts";
import type { Engine, OperatorStore, Remembered } from "./store.ts";
import { storeFailure } from "./store-failure.ts";
import type { EngineName, StoreTarget } from "./store-target.ts";

interface Source {
  /** Packages that are installed with the engine. */
  readonly needs: readonly string[];
  readonly load: () => Promise<Engine>;
}

// Loaded on demand: one engine's command neither waits for the others nor needs their packages.
const engines: Readonly<Record<EngineName, Source>> = {
  module: { needs: [], load: () => Promise.resolve(moduleEngine) },
  sqlite: {
    needs: ["@countersign/store-sql", "libsql"],
    load: async () => (await import("./sqlite-store.ts")).sqliteEngine,
  },
  postgres: {
    needs: ["@countersign/store-sql", "pg"],
    load: async () => (await import("./postgres-store.ts")).postgresEngine,
  },
  mysql: {
    needs: ["@countersign/store-sql", "mysql2"],
    load: async () => (await import("./mysql-store.ts")).mysqlEngine,
  },
  redis: {
    needs: ["@countersign/store-redis", "redis"],
    load: async () => (await import("./redis-store.ts")).redisEngine,
  },
};

export function loadEngine(name: EngineName): Promise<Engine> {
  const { needs, load } = engines[name];
  return loadDriver(needs, load);
}

/** Opens and closes the store around the work. Throws a CommandError for wrong names and whatever the engine refuses. */
export async function withOperatorStore<T>(
  target: StoreTarget,
  work: (store: OperatorStore) => Promise<T>,
  remembered: Remembered = {},
): Promise<T> {
  const store = await failingInOneLine(target, async () =>
    (await loadEngine(target.location.engine)).open(target, remembered),
  );
  try {
    return await failingInOneLine(target, () => work(store));
  } finally {
    await failingInOneLine(target, () => store.close());
  }
}

export function inspectStore(target: StoreTarget): Promise<StoreCondition> {
  return failingInOneLine(target, async () => (await loadEngine(target.location.engine)).inspect(target));
}

/** Only the command's own faults pass unchanged. */
export async function failingInOneLine<T>({ location }: StoreTarget, ask: () => Awaitable<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    const isOurs = error instanceof TypeError && location.engine !== "module";
    if (error instanceof UsageError || isOurs) throw error;
    throw storeFailure(location, error);
  }
}
