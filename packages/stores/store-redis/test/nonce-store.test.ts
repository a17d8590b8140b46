import { expect, test } from "@jest/globals";
import { describeOnRedis } from "@countersign/test-support/servers/engines.ts";
import { newStores, testClock } from "./connections.ts";

const use = { scope: "keyid-1", nonce: "n", token: "a", retainMs: 60_000 };

async function setUp(now?: () => number) {
  const stores = await newStores({ now });
  const name = `${stores.prefix}:nonce:7:keyid-1:n`;
  const send = (command: string, ...args: string[]) =>
    stores.sendCommand([command, name, ...args], { key: name, isReadonly: false });
  return { ...stores, send };
}

describeOnRedis("a nonce on Redis", () => {
  test("goes by itself, within a second of its end", async () => {
    const { nonces, send } = await setUp();
    await nonces.claim(use);
    const ttl = Number(await send("PTTL"));
    expect(ttl).toBeGreaterThan(30_000);
    expect(ttl).toBeLessThanOrEqual(61_000);
  });

  test("keeps the later of two ends when its claim is repeated", async () => {
    const clock = testClock();
    const { nonces, send } = await setUp(clock.now);
    await nonces.claim(use);
    const end = clock.now() + 60_000;
    expect(await send("GET")).toBe(`${end}:a`);
    await nonces.claim({ ...use, retainMs: 1 });
    expect(await send("GET")).toBe(`${end}:a`);
    expect(Number(await send("PTTL"))).toBeGreaterThan(30_000);
    clock.advance(10);
    await nonces.claim(use);
    expect(await send("GET")).toBe(`${end + 10}:a`);
  });

  test("is not touched by a replay", async () => {
    const { nonces, send } = await setUp();
    await nonces.claim(use);
    const before = await send("GET");
    expect(await nonces.claim({ ...use, token: "b", retainMs: 600_000 })).toBe("seen");
    expect(await send("GET")).toBe(before);
    expect(Number(await send("PTTL"))).toBeLessThanOrEqual(61_000);
  });

  test.each([
    ["without its end", "a"],
    ["whose end is no number", "soon:a"],
    ["that is empty", ""],
  ])("whose record is damaged is never fresh: one %s", async (_case, record) => {
    const { nonces, send } = await setUp();
    await send("SET", record);
    await expect(nonces.claim(use)).rejects.toThrow(/record of a nonce is damaged/);
    expect(await send("GET")).toBe(record);
  });

  test("whose record is of another type is never fresh", async () => {
    const { nonces, send } = await setUp();
    await send("HSET", "a", "b");
    await expect(nonces.claim(use)).rejects.toThrow(/WRONGTYPE/);
  });
});
