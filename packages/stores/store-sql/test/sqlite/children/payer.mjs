// A platform process that stops before the commit of one payment: payer.mjs <database file> <token>.
import { writeSync } from "node:fs";
import process from "node:process";
import { createStores } from "@countersign/store-sql";
import Database from "libsql";

const [file, token] = process.argv.slice(2);
const own = { key: "payout-7.acc-1.acc-2", token, fingerprint: "f" };
const database = new Database(file);
const { transactions } = createStores({ database, pruneIntervalMs: 0 });
database.exec("CREATE TABLE IF NOT EXISTS payouts (token TEXT NOT NULL) STRICT");

const limits = { leaseMs: 60_000, waitMs: 5_000, idleTimeoutMs: 60_000 };
await transactions.run((tx) => {
  const { keys } = transactions.begin(tx, { keys: [own], recovery: "rerun", ...limits });
  if (keys[0].status !== "begun") throw new Error(keys[0].status);
  tx.prepare("INSERT INTO payouts VALUES (?)").run(token);
  // By a synchronous write; then the thread is blocked.
  writeSync(1, "before commit\n");
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 30_000);
});
