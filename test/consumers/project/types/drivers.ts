// The connections of three drivers fit the stores as they are, and what is no connection does not.
import { DatabaseSync } from "node:sqlite";
import { type SqliteDatabase, createStores, withImmediateTransaction } from "@countersign/store-sql";
import BetterSqlite3 from "better-sqlite3";
import Libsql from "libsql";

const better = new BetterSqlite3(":memory:");
const libsql = new Libsql(":memory:");
const builtin = new DatabaseSync(":memory:");

createStores({ database: better });
createStores({ database: libsql });
createStores({ database: builtin });

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
createStores({ database: "payouts.db" });
const promising = { exec() {}, prepare: () => ({ run: async () => {}, get() {}, all: () => [] }) };
// @ts-expect-error -- asynchronous drivers cannot hold a transaction together
createStores({ database: promising });
