// A platform process that stops at a named point of one payment: payer.mjs <database file> <token> <lease> <point>.
import { writeSync } from "node:fs";
import process from "node:process";
import { createSqliteStores, withImmediateTransaction } from "@countersign/store-sqlite";
import Database from "libsql";

const [file, token, leaseMs, point] = process.argv.slice(2);
const key = "payout-7.acc-1.acc-2";
const database = new Database(file);
const { idempotency } = createSqliteStores({ database, pruneIntervalMs: 0 });
database.exec("CREATE TABLE IF NOT EXISTS payouts (token TEXT NOT NULL) STRICT");

/** Says where it is by a synchronous write, then blocks the thread, or stops the whole process until it is continued. */
function reach(name) {
  if (name !== point) return;
  writeSync(1, `${name}\n`);
  if (name === "paused") process.kill(process.pid, "SIGSTOP");
  else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 30_000);
}

const { status } = idempotency.claim(key, {
  token,
  fingerprint: "f",
  leaseMs: Number(leaseMs),
  recovery: "rerun",
});
if (status !== "acquired") throw new Error(status);
reach("claimed");
reach("paused");
try {
  withImmediateTransaction(database, (tx) => {
    tx.prepare("INSERT INTO payouts VALUES (?)").run(token);
    if (idempotency.completeIn(tx, key, token) === "lost") throw new Error("lost");
    reach("before commit");
  });
  reach("after commit");
  writeSync(1, "paid\n");
} catch (error) {
  writeSync(1, `${error.message}\n`);
}
