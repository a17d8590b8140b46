import { idempotencyStoreContract, nonceStoreContract } from "@countersign/store-contract";
import { createRedisStores } from "@countersign/store-redis";
import { afterAll, describe, expect, test } from "@jest/globals";
import { Cluster as Cluster6 } from "ioredis";
import { Cluster as Cluster5 } from "ioredis-5";
import { createCluster as createCluster6 } from "redis";
import { createCluster as createCluster5 } from "redis-5";
import { testContract } from "@countersign/test-support/runs/contract.ts";
import { isolatedName, redisUrl } from "@countersign/test-support/servers/engines.ts";
import { startRedisCluster } from "@countersign/test-support/servers/private-redis.ts";
import { type Connection, connectRedis } from "./clients.ts";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { eventually } from "./connections.ts";
import { idempotencyHarness, nonceHarness } from "./harness.ts";

const cluster = redisUrl === undefined ? undefined : await startRedisCluster();
const onCluster = cluster === undefined ? describe.skip : describe;
const nodes = cluster?.nodes ?? [];
const keyless = { key: undefined, isReadonly: false } as const;
const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" } as const;

afterAll(() => cluster?.close());

interface RedisCluster {
  on(event: "error", listener: () => void): unknown;
  connect(): Promise<unknown>;
  sendCommand(key: string | undefined, isReadonly: boolean, command: string[]): Promise<unknown>;
  destroy(): void;
}

interface IoredisCluster {
  on(event: "error", listener: () => void): unknown;
  connect(): Promise<unknown>;
  call(command: string, ...args: string[]): Promise<unknown>;
  quit(): Promise<unknown>;
}

async function overRedis(client: RedisCluster): Promise<Connection> {
  client.on("error", () => {});
  await client.connect();
  return {
    sendCommand: (command, { key, isReadonly }) => client.sendCommand(key, isReadonly, [...command]),
    close: () => client.destroy(),
  };
}

async function overIoredis(client: IoredisCluster): Promise<Connection> {
  client.on("error", () => {});
  await client.connect();
  return {
    sendCommand: ([command = "", ...args]) => client.call(command, ...args),
    close: () => client.quit(),
  };
}

const rootNodes = nodes.map((url) => ({ url }));
const startNodes = nodes.map((url) => ({ host: "127.0.0.1", port: Number(new URL(url).port) }));
// By default its timer would keep the process alive for two seconds.
const settings = { lazyConnect: true, redisOptions: { disconnectTimeout: 200 } };
const clients: readonly (readonly [name: string, connect: () => Promise<Connection>])[] = [
  ["redis 6", () => overRedis(createCluster6({ rootNodes }))],
  ["redis 5", () => overRedis(createCluster5({ rootNodes }))],
  ["ioredis 6", () => overIoredis(new Cluster6(startNodes, settings))],
  ["ioredis 5", () => overIoredis(new Cluster5(startNodes, settings))],
];

describe.each(clients)("on a cluster, over %s", (_client, connect) => {
  const without = ["transaction", "fill", "engine", "durability"] as const;
  const engine = { connect, hasClock: true };
  // A list is one for each node: below.
  const ofAnyNode = idempotencyStoreContract(() => idempotencyHarness(engine), {
    without: [...without, "list"],
  });
  const nonceCases = nonceStoreContract(() => nonceHarness(engine), { without });
  testContract("the contract of the idempotency store", ofAnyNode, onCluster);
  testContract("the contract of the nonce store", nonceCases, onCluster);

  onCluster("its nodes", () => {
    test("share the keys, hash tags included, and follow a slot that has moved", async () => {
      const { sendCommand, close } = await connect();
      afterTest(close);
      const prefix = isolatedName("cluster");
      const { idempotency, nonces } = createRedisStores({ sendCommand, prefix });
      const keys = Array.from({ length: 30 }, (_, index) =>
        index % 3 === 0 ? `{${index}}tag}{` : `key-${index}`,
      );
      for (const key of keys) expect((await idempotency.claim(key, claim)).status).toBe("acquired");
      const masters = await Promise.all(nodes.map((url) => ofMaster(url)));

      const counts = await Promise.all(
        masters.map(
          async ({ send }) =>
            (await send("SCAN", "0", "MATCH", `${prefix}:*`, "COUNT", "10000")) as [string, string[]],
        ),
      );
      const found = counts.map(([, names]) => names.length);
      expect(found.every((count) => count > 0)).toBe(true);
      expect(found.reduce((sum, count) => sum + count)).toBe(keys.length);

      const { nonce, name, slot, owner } = await freeSlot(masters, `${prefix}:nonce:1:s:`);
      const use = { scope: "s", nonce, token: "a", retainMs: 60_000 };
      const next = masters[(owner + 1) % masters.length];
      const moveTo = async (target: (typeof masters)[number] | undefined) => {
        // Above the others' epochs: what they still say about the slot on their bus does not count.
        await target?.send("CLUSTER", "BUMPEPOCH");
        const id = String(await target?.send("CLUSTER", "MYID"));
        for (const { send } of masters) await send("CLUSTER", "SETSLOT", slot, "NODE", id);
      };
      await moveTo(next);
      expect(await eventually(() => nonces.claim(use))).toBe("fresh");
      expect(await nonces.claim({ ...use, token: "b" })).toBe("seen");
      await next?.send("UNLINK", name);
      await moveTo(masters[owner]);
    });
  });
});

/** A nonce in a slot without keys: a node gives none away that holds what other tests have left in it. */
async function freeSlot(masters: readonly Awaited<ReturnType<typeof ofMaster>>[], before: string) {
  for (let tried = 0; ; tried++) {
    const nonce = `moving-${tried}`;
    const name = before + nonce;
    const slot = String(await masters[0]?.send("CLUSTER", "KEYSLOT", name));
    const owner = Math.floor(Number(slot) / Math.ceil(16_384 / masters.length));
    const held = await masters[owner]?.send("CLUSTER", "COUNTKEYSINSLOT", slot);
    if (held === 0) return { nonce, name, slot, owner };
  }
}

async function ofMaster(url: string) {
  const { sendCommand, close } = await connectRedis(url);
  afterTest(close);
  return { send: (...command: string[]) => sendCommand(command, keyless), sendCommand };
}

onCluster("list() on a cluster", () => {
  test("gives all keys by the stores of all masters, each key once", async () => {
    const { sendCommand, close } = await overRedis(createCluster6({ rootNodes }));
    afterTest(close);
    const prefix = isolatedName("cluster");
    const { idempotency } = createRedisStores({ sendCommand, prefix });
    const keys = Array.from({ length: 30 }, (_, index) => `key-${index}`);
    await Promise.all(keys.map((key) => idempotency.claim(key, claim)));
    const pages = await Promise.all(
      nodes.map(async (url) => {
        const master = await ofMaster(url);
        const stores = createRedisStores({
          prefix,
          sendCommand: (command, route) =>
            route.key === undefined ? master.sendCommand(command, route) : sendCommand(command, route),
        });
        const { entries, cursor } = await stores.idempotency.list({ state: "running", limit: 1_000 });
        expect(cursor).toBeUndefined();
        return entries.map(({ key }) => key);
      }),
    );
    const listed = pages.flat();
    expect(listed).toHaveLength(keys.length);
    expect(new Set(listed)).toEqual(new Set(keys));
  });

  test("refuses the cursor of one node at another", async () => {
    const { sendCommand, close } = await overRedis(createCluster6({ rootNodes }));
    afterTest(close);
    const prefix = isolatedName("cluster");
    const { idempotency } = createRedisStores({ sendCommand, prefix });
    const keys = Array.from({ length: 90 }, (_, index) => `key-${index}`);
    await Promise.all(keys.map((key) => idempotency.claim(key, claim)));
    const [first, second] = await Promise.all(
      nodes.slice(0, 2).map(async (url) => {
        const master = await ofMaster(url);
        return createRedisStores({
          prefix,
          sendCommand: (command, route) =>
            route.key === undefined ? master.sendCommand(command, route) : sendCommand(command, route),
        });
      }),
    );
    const page = await first?.idempotency.list({ state: "running", limit: 2 });
    const query = { state: "running", limit: 1_000, cursor: page?.cursor ?? "" } as const;
    await expect(second?.idempotency.list(query)).rejects.toThrow(/cursor is of another server/);
    expect((await first?.idempotency.list(query))?.entries).not.toHaveLength(0);
  });
});
