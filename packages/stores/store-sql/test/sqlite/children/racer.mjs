// One of several processes that claim the same keys and nonces: racer.mjs <database file> <name> <count>.
import process from "node:process";
import { createStores } from "@countersign/store-sql";
import Database from "libsql";

const [file, name, count] = process.argv.slice(2);
const { idempotency, nonces } = createStores({ database: new Database(file), pruneIntervalMs: 0 });

process.once("message", () => {
  const won = { keys: [], nonces: [] };
  for (let index = 0; index < Number(count); index++) {
    const token = `${name}-${index}`;
    const claim = { token, fingerprint: "f", leaseMs: 60_000, recovery: "rerun" };
    if (idempotency.claim(`key-${index}`, claim).status === "acquired") won.keys.push(index);
    const use = { scope: "keyid", nonce: `nonce-${index}`, token, retainMs: 60_000 };
    if (nonces.claim(use) === "fresh") won.nonces.push(index);
  }
  process.send(won, () => process.disconnect());
});
process.send("ready");
