import type { IdempotencyListing } from "@countersign/idempotency";
import { createRedisStores, type RedisStores, type RedisStoresOptions } from "@countersign/store-redis";
import { afterAll, describe, expect, test } from "@jest/globals";
import { Redis as Ioredis6 } from "ioredis";
import { Redis as Ioredis5 } from "ioredis-5";
import { redisUrl } from "@countersign/test-support/servers/engines.ts";
import { startPrivateRedis } from "@countersign/test-support/servers/private-redis.ts";
import { connectRedis } from "./clients.ts";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { eventually, patientMs } from "./connections.ts";

const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" } as const;
const server = redisUrl === undefined ? undefined : await startPrivateRedis({ persist: true });
const onOwnServer = server === undefined ? describe.skip : describe;

afterAll(() => server?.close());

async function connect(): Promise<RedisStoresOptions["sendCommand"]> {
  const { sendCommand, close } = await connectRedis(server?.url ?? "");
  afterTest(close);
  return sendCommand;
}

/** Claims as many keys, more than a page of 5 has. */
async function claimKeys({ idempotency }: RedisStores): Promise<string[]> {
  const keys = Array.from({ length: 40 }, (_, index) => `key-${index}`);
  await Promise.all(keys.map((key) => idempotency.claim(key, claim)));
  return keys;
}

async function listAll({ idempotency }: RedisStores, from?: string): Promise<Set<string>> {
  const listed = new Set<string>();
  let cursor = from;
  do {
    // oxlint-disable-next-line no-await-in-loop -- a page is found by the cursor of the one before
    const page: IdempotencyListing = await idempotency.list({ state: "running", limit: 5, cursor });
    for (const { key } of page.entries) listed.add(key);
    ({ cursor } = page);
  } while (cursor !== undefined);
  return listed;
}

onOwnServer("the cursor of a list", () => {
  test("leads to the next page over any connection, and nowhere once the server was started anew", async () => {
    const stores = createRedisStores({
      sendCommand: await connect(),
      prefix: "restart",
      commandTimeoutMs: patientMs,
    });
    const others = createRedisStores({
      sendCommand: await connect(),
      prefix: "restart",
      commandTimeoutMs: patientMs,
    });
    const keys = await claimKeys(stores);
    const { cursor } = await stores.idempotency.list({ state: "running", limit: 5 });
    expect(cursor).toBeDefined();
    const query = { state: "running", limit: 5, cursor } as const;
    // A page may be empty, but 40 keys are more than one page.
    expect((await listAll(others, cursor)).size).toBeGreaterThan(0);

    await server?.kill();
    await server?.start();
    await eventually(() => stores.idempotency.prune());
    await expect(stores.idempotency.list(query)).rejects.toThrow(TypeError);
    expect(await listAll(stores)).toEqual(new Set(keys));
  });

  test("is not given to a user without INFO, whose first page is not the last", async () => {
    const sendCommand = await connect();
    const stores = createRedisStores({ sendCommand, prefix: "rights", commandTimeoutMs: patientMs });
    await claimKeys(stores);
    const send = (...command: string[]) => sendCommand(command, { key: undefined, isReadonly: false });
    await send("ACL", "SETUSER", "blind", "on", ">secret", "~*", "+@all", "-info");
    const blind = await connectRedis((server?.url ?? "").replace("redis://", "redis://blind:secret@"));
    afterTest(blind.close);
    const { idempotency } = createRedisStores({
      sendCommand: blind.sendCommand,
      prefix: "rights",
      commandTimeoutMs: patientMs,
    });
    await expect(idempotency.list({ state: "running", limit: 5 })).rejects.toThrow(/needs run_id of INFO/);
  });
});

const over6 = (keyPrefix: string) => new Ioredis6(server?.url ?? "", { keyPrefix });
const over5 = (keyPrefix: string) => new Ioredis5(server?.url ?? "", { keyPrefix });

onOwnServer("a client with a keyPrefix of its own", () => {
  test.each([
    ["ioredis 6", "app:", over6],
    ["ioredis 5", "app5:", over5],
    ["ioredis 6, a pattern", "a*[b]?\\{c}^-", over6],
    ["ioredis 6, letters of more than a byte", "ä€😀:", over6],
  ])("lists all its keys and no others: %s", async (_case, keyPrefix, over) => {
    const prefix = "own";
    // What the pattern would match if it were one.
    for (const other of ["", "aXb?\\{c}^-", "other:"]) {
      const sendCommand = await connect();
      const { idempotency } = createRedisStores({
        prefix,
        commandTimeoutMs: patientMs,
        sendCommand: (command, route) =>
          sendCommand(
            command.map((part) => (part === route.key ? `${other}${part}` : part)),
            route,
          ),
      });
      await idempotency.claim(`of another client, ${other}`, claim);
    }
    const client = over(keyPrefix);
    afterTest(() => client.disconnect());
    const stores = createRedisStores({
      prefix,
      commandTimeoutMs: patientMs,
      sendCommand: ([command = "", ...args]) => client.call(command, ...args),
    });
    const keys = await claimKeys(stores);
    expect(await listAll(stores)).toEqual(new Set(keys));
    expect(await stores.idempotency.complete("key-1", "a")).toBe("ok");
    expect(await stores.idempotency.resolve("key-2", "done", { fence: 1 })).toBe("not-held");
    const { idempotency } = createRedisStores({
      sendCommand: await connect(),
      prefix,
      commandTimeoutMs: patientMs,
    });
    expect(await idempotency.read("key-1")).toBeUndefined();
  });
});
