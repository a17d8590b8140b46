// The connections of three drivers fit the stores as they are, and what is no connection does not.
import { DatabaseSync } from "node:sqlite";
import {
  createSqliteStores,
  withImmediateTransaction,
  type SqliteDatabase,
} from "@countersign/store-sql/sqlite";
import BetterSqlite3 from "better-sqlite3";
import Libsql from "libsql";

const better = new BetterSqlite3(":memory:");
const libsql = new Libsql(":memory:");
const builtin = new DatabaseSync(":memory:");

createSqliteStores({ database: better });
createSqliteStores({ database: libsql });
createSqliteStores({ database: builtin });

withImmediateTransaction(better, (tx: BetterSqlite3.Database) => recordPayout(tx, null));
withImmediateTransaction(libsql, (tx: Libsql.Database) => recordPayout(tx, null));
withImmediateTransaction(builtin, (tx: DatabaseSync) => recordPayout(tx, null));

export function recordPayout(database: SqliteDatabase, iban: string | null): number {
  return Number(database.prepare("INSERT INTO payouts (iban) VALUES (?)").run(iban).changes);
}
recordPayout(better, null);
recordPayout(libsql, null);
recordPayout(builtin, null);

// @ts-expect-error -- a path is no connection
createSqliteStores({ database: "payouts.db" });
const promising = { exec() {}, prepare: () => ({ run: async () => {}, get() {}, all: () => [] }) };
// @ts-expect-error -- asynchronous drivers cannot hold a transaction together
createSqliteStores({ database: promising });
