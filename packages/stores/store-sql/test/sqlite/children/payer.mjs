// A platform process that stops before the commit of one payment: payer.mjs <database file> <token> <lease>.
import { writeSync } from "node:fs";
import process from "node:process";
import { createSqliteStores, withImmediateTransaction } from "@countersign/store-sql/sqlite";
import Database from "libsql";

const [file, token, leaseMs] = process.argv.slice(2);
const key = "payout-7.acc-1.acc-2";
const database = new Database(file);
const { idempotency } = createSqliteStores({ database, pruneIntervalMs: 0 });
database.exec("CREATE TABLE IF NOT EXISTS payouts (token TEXT NOT NULL) STRICT");

const { status } = idempotency.claim(key, {
  token,
  fingerprint: "f",
  leaseMs: Number(leaseMs),
  recovery: "rerun",
});
if (status !== "acquired") throw new Error(status);
withImmediateTransaction(database, (tx) => {
  tx.prepare("INSERT INTO payouts VALUES (?)").run(token);
  if (idempotency.completeIn(tx, key, token) === "lost") throw new Error("lost");
  // By a synchronous write; then the thread is blocked.
  writeSync(1, "before commit\n");
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 30_000);
});
