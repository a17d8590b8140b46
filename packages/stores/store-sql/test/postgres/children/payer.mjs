// A platform process that stops before the commit of one payment: payer.mjs <url> <schema> <token> <lease> [<idle>].
import { writeSync } from "node:fs";
import process from "node:process";
import { createPostgresStores, withPostgresTransaction } from "@countersign/store-sql/postgres";
import { Pool } from "pg";

const [connectionString, schema, token, leaseMs, idleMs] = process.argv.slice(2);
const key = "payout-7.acc-1.acc-2";
const pool = new Pool({ connectionString });
pool.on("error", () => {});
const { idempotency } = createPostgresStores({ pool, schema, pruneIntervalMs: 0 });

const claim = { token, fingerprint: "f", leaseMs: Number(leaseMs), recovery: "rerun" };
const { status } = await idempotency.claim(key, claim);
if (status !== "acquired") throw new Error(status);
try {
  const work = async (client) => {
    await client.query(`INSERT INTO ${schema}.payouts VALUES ($1)`, [token]);
    if ((await idempotency.completeIn(client, key, token)) === "lost") throw new Error("lost");
    // By a synchronous write; then the whole process stops until it is continued.
    writeSync(1, "paused before commit\n");
    process.kill(process.pid, "SIGSTOP");
  };
  await withPostgresTransaction(pool, work, {
    idleTimeoutMs: idleMs === undefined ? undefined : Number(idleMs),
  });
  writeSync(1, "paid\n");
} catch (error) {
  writeSync(1, `${error.message}\n`);
}
await pool.end();
