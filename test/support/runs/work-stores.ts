import { type SqliteStores, createStores } from "@countersign/store-sql";
import Database from "libsql";
import { afterTest, testClock } from "./after-test.ts";

export type Db = InstanceType<typeof Database>;
export type Stores = SqliteStores<Db>;

/** Options of a worker that waits for nothing. */
export const quick = { pollMs: 10, backoffMs: 1, maxBackoffMs: 5 };

/** A database with a table of work, until the test ends. The clock stands still until it is told. */
export function openStores(): { stores: Stores; db: Db; clock: ReturnType<typeof testClock> } {
  const db = new Database(":memory:");
  const clock = testClock();
  const stores = createStores({ database: db, pruneIntervalMs: 0, now: clock.now });
  afterTest(() => {
    stores.close();
    db.close();
  });
  return { stores, db, clock };
}

/** An object some of whose methods do otherwise. */
export function changed<Target extends object>(target: Target, methods: Partial<Target>): Target {
  return new Proxy(target, {
    get(_target, name) {
      const value: unknown = Reflect.get(methods, name) ?? Reflect.get(target, name);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}
