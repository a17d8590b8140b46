// A platform process that stops before the commit of one payment: payer.mjs <url> <schema> <token> [<idle>].
import { writeSync } from "node:fs";
import process from "node:process";
import { fromPg } from "@countersign/store-sql/pg";
import { createStores } from "@countersign/store-sql";
import { Pool } from "pg";

const [connectionString, schema, token, idleMs = "60000"] = process.argv.slice(2);
const own = { key: "payout-7.acc-1.acc-2", token, fingerprint: "f" };
const pool = new Pool({ connectionString });
pool.on("error", () => {});
const { transactions } = createStores({ database: fromPg(pool), schema, pruneIntervalMs: 0 });

const limits = { leaseMs: 60_000, waitMs: 5_000, idleTimeoutMs: Number(idleMs) };
try {
  await transactions.run(async (tx) => {
    const { keys } = await transactions.begin(tx, { keys: [own], recovery: "rerun", ...limits });
    if (keys[0].status !== "begun") throw new Error(keys[0].status);
    await tx.query(`INSERT INTO ${schema}.payouts VALUES ($1)`, [token]);
    // By a synchronous write; then the whole process stops until it is continued.
    writeSync(1, "paused before commit\n");
    process.kill(process.pid, "SIGSTOP");
    await transactions.keep(tx, [own], false);
  });
  writeSync(1, "paid\n");
} catch (error) {
  writeSync(1, `${error.message}\n`);
}
await pool.end();
