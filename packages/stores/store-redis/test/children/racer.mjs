// One of several processes that claim the same keys and nonces: racer.mjs <url> <prefix> <name> <driver> <count>.
import process from "node:process";
import { createRedisStores } from "@countersign/store-redis";
import { Redis } from "ioredis";
import { createClient } from "redis";

const [url, prefix, name, driver, count] = process.argv.slice(2);

async function connect() {
  if (driver === "ioredis") {
    const client = new Redis(url, { lazyConnect: true });
    await client.connect();
    return {
      sendCommand: ([command, ...args]) => client.call(command, ...args),
      disconnect: () => client.disconnect(),
    };
  }
  const client = await createClient({ url }).connect();
  return { sendCommand: (command) => client.sendCommand([...command]), disconnect: () => client.destroy() };
}

const { sendCommand, disconnect } = await connect();
const { idempotency, nonces } = createRedisStores({ sendCommand, prefix, commandTimeoutMs: 30_000 });

process.once("message", async () => {
  const won = { keys: [], nonces: [] };
  const race = async (index) => {
    const token = `${name}-${index}`;
    const claim = { token, fingerprint: "f", leaseMs: 60_000, recovery: "rerun" };
    if ((await idempotency.claim(`key-${index}`, claim)).status === "acquired") {
      won.keys.push(index);
      await idempotency.complete(`key-${index}`, token);
    }
    const use = { scope: "keyid", nonce: `nonce-${index}`, token, retainMs: 60_000 };
    if ((await nonces.claim(use)) === "fresh") won.nonces.push(index);
  };
  await Promise.all(Array.from({ length: Number(count) }, (_, index) => race(index)));
  disconnect();
  process.send(won, () => process.disconnect());
});
process.send("ready");
