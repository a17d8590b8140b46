import {
  defineCases,
  transactionStoreContract,
  type TestRunner,
} from "@countersign/store-contract";
import { createStores } from "@countersign/store-sql";
import Database from "libsql";

// Your stores in place of these, and a table in which a handler pays.
const makeStores = () => {
  const database = new Database(":memory:");
  database.exec("CREATE TABLE payouts (id TEXT PRIMARY KEY)");
  const store = createStores({ database });
  return {
    store,
    write: (tx: typeof database, id: string) =>
      tx.prepare("INSERT INTO payouts VALUES (?)").run(id),
    written: () =>
      database.prepare("SELECT id FROM payouts").pluck().all().map(String),
    // By the connection: a `tx` may refuse to end its transaction.
    end: (_tx: typeof database, statement: "COMMIT" | "ROLLBACK") =>
      database.exec(statement),
    close() {
      store.close();
      database.close();
    },
  };
};
const without = [
  "clock",
  "another",
  "fill",
  "engine",
  "durability",
  "swallow",
  "waiting",
] as const;

export function testMyTransactions(runner: TestRunner): void {
  defineCases(transactionStoreContract(makeStores, { without }), {
    title: "my transactions",
    ...runner,
  });
}
