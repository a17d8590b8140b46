// A platform process that stops at a named point of one payment: payer.mjs <url> <schema> <token> <lease> <point> [<idle>].
import { writeSync } from "node:fs";
import process from "node:process";
import { createPostgresStores, withPostgresTransaction } from "@countersign/store-postgres";
import { Pool } from "pg";

const [connectionString, schema, token, leaseMs, point, idleMs] = process.argv.slice(2);
const key = "payout-7.acc-1.acc-2";
const pool = new Pool({ connectionString });
pool.on("error", () => {});
const { idempotency } = createPostgresStores({ pool, schema, pruneIntervalMs: 0 });

/** Says where it is by a synchronous write, then blocks the thread, or stops the whole process until it is continued. */
function reach(name) {
  if (name !== point) return;
  writeSync(1, `${name}\n`);
  if (name.startsWith("paused")) process.kill(process.pid, "SIGSTOP");
  else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 30_000);
}

const claim = { token, fingerprint: "f", leaseMs: Number(leaseMs), recovery: "rerun" };
const { status } = await idempotency.claim(key, claim);
if (status !== "acquired") throw new Error(status);
reach("claimed");
reach("paused");
try {
  const work = async (client) => {
    await client.query(`INSERT INTO ${schema}.payouts VALUES ($1)`, [token]);
    reach("paused in the transaction");
    if ((await idempotency.completeIn(client, key, token)) === "lost") throw new Error("lost");
    reach("before commit");
    reach("paused before commit");
  };
  await withPostgresTransaction(pool, work, {
    idleTimeoutMs: idleMs === undefined ? undefined : Number(idleMs),
  });
  reach("after commit");
  writeSync(1, "paid\n");
} catch (error) {
  writeSync(1, `${error.message}\n`);
}
await pool.end();
