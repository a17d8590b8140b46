// Commands that a payout sends to Redis, counted at the client; and the memory of Redis for many keys and nonces.
import { randomUUID } from "node:crypto";
import { createRedisStores } from "@countersign/store-redis";
import inject from "light-my-request";
import { payout as payoutApp } from "./apps.mjs";
import { startRedis } from "./engines.mjs";
import { freshKey } from "./latency.mjs";
import { createSigner, path } from "./signer.mjs";
import { megabytes } from "./sizes.mjs";

const payouts = 200;
const growthCount = 200_000;
const perMillion = 1_000_000 / growthCount;

/** Every command that a payout causes, for its nonce and for its key; the first payout also loads the scripts. */
export async function redisRoundTrips() {
  const engine = await startRedis();
  if (engine === undefined) return undefined;
  const counts = { nonce: 0, key: 0, other: 0 };
  const sendCommand = (args, { key }) => {
    counts[kindOf(key)] += 1;
    return engine.client.sendCommand([...args]);
  };
  const stores = createRedisStores({ sendCommand });
  try {
    const signer = createSigner();
    const app = payoutApp(signer, () => stores);
    await pay(app, signer.next());
    Object.assign(counts, { nonce: 0, key: 0, other: 0 });
    for (let payout = 0; payout < payouts; payout++) await pay(app, signer.next());
    if (counts.other > 0) throw new Error("a command belongs neither to a nonce nor to a key");
    return ["nonce", "key"].map((kind) => ({
      name: `Redis, round trips for a payout's ${kind}`,
      ratio: counts[kind] / payouts,
      target: "<= 2",
      met: (ratio) => ratio > 0 && ratio <= 2,
    }));
  } finally {
    stores.close();
    await engine.close();
  }
}

/** What 200,000 keys, claimed and completed by the store, add to used_memory, times five; likewise for nonces. */
export async function redisGrowth() {
  const engine = await startRedis();
  if (engine === undefined) return undefined;
  const { client } = engine;
  const stores = createRedisStores({ sendCommand: (args) => client.sendCommand([...args]) });
  const used = async () => Number(/^used_memory:(\d+)/m.exec(await client.info("memory"))[1]);
  try {
    await completeKey(stores.idempotency);
    await claimNonce(stores.nonces);
    const before = await used();
    await inParallel(growthCount, () => completeKey(stores.idempotency));
    const withKeys = await used();
    await inParallel(growthCount, () => claimNonce(stores.nonces));
    return [
      megabytes("Redis, MB per million keys (from 200 k)", (withKeys - before) * perMillion),
      megabytes("Redis, MB per million nonces (from 200 k)", ((await used()) - withKeys) * perMillion),
    ];
  } finally {
    stores.close();
    await engine.close();
  }
}

function kindOf(key) {
  if (key === undefined) return "other";
  return key.startsWith("countersign:nonce:")
    ? "nonce"
    : key.startsWith("countersign:key:")
      ? "key"
      : "other";
}

async function pay(app, { headers, body }) {
  const request = { method: "POST", url: path, headers, payload: body, remoteAddress: "127.0.0.1" };
  const { statusCode } = await inject(app, request);
  if (statusCode !== 200) throw new Error(`answered ${statusCode}`);
}

async function completeKey(store) {
  const key = freshKey();
  const token = randomUUID();
  const claim = { token, fingerprint: "x".repeat(43), leaseMs: 30_000, recovery: "rerun" };
  const { status } = await store.claim(key, claim);
  if (status !== "acquired" || (await store.complete(key, token)) !== "ok") throw new Error("not completed");
}

async function claimNonce(store) {
  const claim = { scope: "service-key-1", nonce: randomUUID(), token: randomUUID(), retainMs: 150_000 };
  if ((await store.claim(claim)) !== "fresh") throw new Error("a nonce was not fresh");
}

async function inParallel(count, work) {
  let left = count;
  const loop = async () => {
    while (left-- > 0) await work();
  };
  await Promise.all(Array.from({ length: 100 }, loop));
}
