// SQLite with a table of work, as a user of the kit would hand it to it; and the same with one thing wrong.
import type { TransactionStore } from "@countersign/idempotency";
import type { StoreHarnesses } from "@countersign/store-contract";
import type { WorkStore, WorkStores } from "@countersign/idempotency/work";
import { type Connection, type Open, openLibsql } from "../../store-sql/test/sqlite/connections.ts";
import { testClock } from "./memory-harness.ts";
import { SqliteDatabaseOfTest } from "./sqlite-harness.ts";

export interface WorkPlatform {
  readonly database: Connection;
  readonly work: WorkStore<Connection, "sync">;
  readonly transactions: TransactionStore<Connection, "sync">;
  readonly now: () => number;
}

/** What is another one than in right stores. */
export type WrongStores = (platform: WorkPlatform) => Partial<WorkStores<Connection>>;

export function workHarness(
  where: "file" | "memory",
  { open = openLibsql, wrong }: { open?: Open; wrong?: WrongStores | undefined } = {},
): StoreHarnesses<Connection>["work"] {
  const clock = testClock();
  const made = new SqliteDatabaseOfTest(where, clock, open);
  const database = made.connect();
  database.exec("CREATE TABLE payouts (id TEXT PRIMARY KEY) STRICT");
  const right = made.open(database);
  const different = wrong?.({ database, ...right, now: clock.now });
  return {
    store: { ...right, ...different },
    advance: clock.advance,
    ...(where === "file" && { another: () => made.open(made.connect()) }),
    // Beside a wrong store stands the right one.
    ...(wrong && { another: () => right }),
    write: (tx, id) => tx.prepare("INSERT INTO payouts (id) VALUES (?)").run(id),
    written: () =>
      database
        .prepare("SELECT id FROM payouts")
        .all()
        .map((row) => (row as { id: string }).id),
    close: () => made.close(),
  };
}
