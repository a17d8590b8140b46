import { afterAll, describe, expect, test } from "@jest/globals";
import { createClient, createCluster } from "redis";
import { redisServer } from "./server-binaries.mjs";
import { startPrivateRedis, startRedisCluster } from "./private-redis.ts";

const forgetful = await startPrivateRedis();
const lasting = await startPrivateRedis({ persist: true, args: ["--maxmemory", "50mb"] });

afterAll(() => Promise.all([forgetful?.close(), lasting?.close()]));

async function command(url: string, ...args: string[]): Promise<unknown> {
  const socket = { reconnectStrategy: false as const };
  const client = createClient({ url, socket }).on("error", () => {});
  await client.connect();
  try {
    return await client.sendCommand(args);
  } finally {
    client.destroy();
  }
}

const describeHere = redisServer() === undefined ? describe.skip : describe;

describeHere("startPrivateRedis", () => {
  test("keeps what was written over stop() and kill() when it persists", async () => {
    const url = lasting?.url ?? "";
    await command(url, "SET", "a", "1");
    await lasting?.stop();
    await expect(command(url, "GET", "a")).rejects.toMatchObject({ code: "ECONNREFUSED" });
    await lasting?.start();
    await command(url, "SET", "b", "2");
    await lasting?.kill();
    await lasting?.start();
    expect(await command(url, "MGET", "a", "b")).toEqual(["1", "2"]);
  });

  test("forgets everything at a restart when it does not persist", async () => {
    const url = forgetful?.url ?? "";
    await command(url, "SET", "a", "1");
    await forgetful?.stop();
    await forgetful?.start();
    expect(await command(url, "GET", "a")).toBeNull();
  });

  test("takes arguments of redis-server", async () => {
    expect(await command(lasting?.url ?? "", "CONFIG", "GET", "maxmemory")).toEqual({
      maxmemory: "52428800",
    });
  });
});

describeHere("startRedisCluster", () => {
  test("spreads keys over three masters", async () => {
    const cluster = await startRedisCluster();
    const client = createCluster({ rootNodes: (cluster?.nodes ?? []).map((url) => ({ url })) });
    client.on("error", () => {});
    try {
      await client.connect();
      expect(client.masters).toHaveLength(3);
      const keys = Array.from({ length: 30 }, (_, index) => `key-${index}`);
      for (const key of keys) await client.set(key, key);
      for (const key of keys) expect(await client.get(key)).toBe(key);
      const sizes = await Promise.all((cluster?.nodes ?? []).map((url) => command(url, "DBSIZE")));
      expect(sizes.reduce<number>((sum, size) => sum + Number(size), 0)).toBe(30);
      for (const size of sizes) expect(Number(size)).toBeGreaterThan(0);
    } finally {
      client.destroy();
      await cluster?.close();
    }
  });
});
