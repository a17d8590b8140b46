// One of several processes that claim the same keys and nonces: racer.mjs <url> <schema> <name> <count>.
import process from "node:process";
import { createPostgresStores } from "@countersign/store-postgres";
import { Pool } from "pg";

const [connectionString, schema, name, count] = process.argv.slice(2);
const pool = new Pool({ connectionString, max: 5 });
const { idempotency, nonces, ready } = createPostgresStores({ pool, schema, pruneIntervalMs: 0 });
await ready();

process.once("message", async () => {
  const won = { keys: [], nonces: [] };
  const race = async (index) => {
    const token = `${name}-${index}`;
    const claim = { token, fingerprint: "f", leaseMs: 60_000, recovery: "rerun" };
    if ((await idempotency.claim(`key-${index}`, claim)).status === "acquired") won.keys.push(index);
    const use = { scope: "keyid", nonce: `nonce-${index}`, token, retainMs: 60_000 };
    if ((await nonces.claim(use)) === "fresh") won.nonces.push(index);
  };
  await Promise.all(Array.from({ length: Number(count) }, (_, index) => race(index)));
  await pool.end();
  process.send(won, () => process.disconnect());
});
process.send("ready");
