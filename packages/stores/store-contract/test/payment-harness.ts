// SQLite with transactions, as a user of the kit would hand it to it; and the same with one thing wrong.
import type { TransactionStore, TransactionStores } from "@countersign/idempotency";
import type { StoreHarnesses } from "@countersign/store-contract";
import { type Connection, type Open, openLibsql } from "../../store-sql/test/sqlite/connections.ts";
import { type Clock, testClock } from "./memory-harness.ts";
import { SqliteDatabaseOfTest } from "./sqlite-harness.ts";

interface PaymentPlatform {
  readonly database: Connection;
  readonly stores: TransactionStores<Connection>;
}

const methods = [
  "run",
  "begin",
  "openGate",
  "keep",
  "assertOpen",
  "free",
  "hold",
  "written",
  "faultOf",
] as const satisfies readonly (keyof TransactionStore<Connection>)[];

export type WrongTransactions = (platform: PaymentPlatform) => Partial<TransactionStore<Connection>>;

export function paymentHarness(
  where: "file" | "memory",
  wrong: WrongTransactions = () => ({}),
  { open = openLibsql, clock = testClock() }: { open?: Open; clock?: Clock } = {},
): StoreHarnesses<Connection>["transactions"] {
  const made = new SqliteDatabaseOfTest(where, clock, open);
  const database = made.connect();
  database.exec("CREATE TABLE payouts (id TEXT PRIMARY KEY) STRICT");
  const stores = made.open(database);
  const right: TransactionStore<Connection> = stores.transactions;
  const bound = Object.fromEntries(methods.map((name) => [name, right[name]?.bind(right)]));
  const transactions = {
    engine: right.engine,
    mode: right.mode,
    retentionMs: right.retentionMs,
    ...(bound as Pick<typeof right, (typeof methods)[number]>),
    ...wrong({ database, stores }),
  };
  const insert = "INSERT INTO payouts (id) VALUES (?)";
  return {
    store: { ...stores, transactions },
    ...(clock.advance && { advance: clock.advance }),
    write: (tx, id) => tx.prepare(insert).run(id),
    written: () =>
      database
        .prepare("SELECT id FROM payouts")
        .all()
        .map((row) => (row as { id: string }).id),
    end: (_tx, statement) => database.exec(statement),
    swallow(tx) {
      tx.prepare(insert).run("twice");
      try {
        tx.exec("INSERT OR ROLLBACK INTO payouts (id) VALUES ('twice')");
      } catch {
        // As a handler that swallows it.
      }
    },
    close: () => made.close(),
  };
}
