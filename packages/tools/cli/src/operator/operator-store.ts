import type { Awaitable } from "@countersign/idempotency";
import { UsageError } from "../command-io.ts";
import type { StoreCondition } from "../doctor/findings.ts";
import { loadDriver } from "../load-package.ts";
import { moduleEngine } from "./module-store.ts";
import type { Engine, OperatorStore } from "./store.ts";
import { storeFailure } from "./store-failure.ts";
import type { EngineName, StoreTarget } from "./store-target.ts";

// Loaded on demand: one engine's command neither waits for the others nor needs their packages.
const engines: Readonly<Record<EngineName, () => Awaitable<Engine>>> = {
  module: () => moduleEngine,
  sqlite: async () => (await loadSqlite()).sqliteEngine,
  postgres: async () => (await loadPostgres()).postgresEngine,
  mysql: async () => (await loadMysql()).mysqlEngine,
  redis: async () => {
    const name = "@countersign/store-redis";
    return (await loadDriver(name, () => import("./redis-store.ts"), `${name} redis`)).redisEngine;
  },
};

export function loadSqlite() {
  const install = "@countersign/store-sqlite libsql";
  const load = () => loadDriver("libsql", () => import("./sqlite-store.ts"), install);
  return loadDriver("@countersign/store-sqlite", load, install);
}

export function loadPostgres() {
  const name = "@countersign/store-postgres";
  return loadDriver(name, () => import("./postgres-store.ts"), `${name} pg`);
}

export function loadMysql() {
  const install = "@countersign/store-mysql @countersign/databases mysql2";
  const load = () => loadDriver("@countersign/databases", () => import("./mysql-store.ts"), install);
  return loadDriver("@countersign/store-mysql", load, install);
}

/** Opens and closes the store around the work. Throws a CommandError for wrong names and whatever the engine refuses. */
export async function withOperatorStore<T>(
  target: StoreTarget,
  work: (store: OperatorStore) => Promise<T>,
  retentionMs?: number,
): Promise<T> {
  const store = await failingInOneLine(target, async () =>
    (await engines[target.location.engine]()).open(target, retentionMs),
  );
  try {
    return await failingInOneLine(target, () => work(store));
  } finally {
    await failingInOneLine(target, () => store.close());
  }
}

export function inspectStore(target: StoreTarget): Promise<StoreCondition> {
  return failingInOneLine(target, async () => (await engines[target.location.engine]()).inspect(target));
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
