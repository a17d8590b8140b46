import { type RedisStoresOptions, createRedisStores } from "@countersign/store-redis";
import { describe, expect, test } from "@jest/globals";
import { dayMs } from "./connections.ts";
import { onFakeServer } from "./fake-server.ts";

const sendCommand = () => Promise.resolve("OK");

describe("createRedisStores() options", () => {
  test.each<[string, unknown, RegExp]>([
    ["no options", undefined, /options must be an object/],
    ["no sendCommand", {}, /option sendCommand/],
    ["a client in place of sendCommand", { sendCommand: { sendCommand } }, /option sendCommand/],
    ["a URL in place of sendCommand", { sendCommand: "redis://localhost" }, /option sendCommand/],
    ["a misspelt option", { sendCommand, keyPrefix: "a" }, /unknown option keyPrefix/],
    ["an empty prefix", { sendCommand, prefix: "" }, /option prefix/],
    ["a prefix that is no text", { sendCommand, prefix: 7 }, /option prefix/],
    ["a prefix of 65 characters", { sendCommand, prefix: "x".repeat(65) }, /option prefix/],
    ["a pattern of SCAN as prefix", { sendCommand, prefix: "a*" }, /option prefix/],
    ["another pattern of SCAN", { sendCommand, prefix: "[ab]?" }, /option prefix/],
    ["a hash tag, which would put all keys on one node", { sendCommand, prefix: "{a}" }, /option prefix/],
    ["a prefix with a backslash", { sendCommand, prefix: "a\\" }, /option prefix/],
    ["a prefix with a line break", { sendCommand, prefix: "a\n" }, /option prefix/],
    ["a prefix of another alphabet", { sendCommand, prefix: "\u00e9" }, /option prefix/],
    ["a prefix that holds the start of a key", { sendCommand, prefix: "a:key:b" }, /without :key:/],
    ["a prefix that ends like the start of a key", { sendCommand, prefix: "a:key" }, /without :key:/],
    ["a prefix that holds the start of a nonce", { sendCommand, prefix: "a:nonce" }, /without .*:nonce:/],
    ["a retention below a day", { sendCommand, retentionMs: dayMs - 1 }, /option retentionMs/],
    ["a retention that is text", { sendCommand, retentionMs: "90d" }, /option retentionMs/],
    ["a retention of more than a century", { sendCommand, retentionMs: 36_501 * dayMs }, /retentionMs/],
    ["no time for a command", { sendCommand, commandTimeoutMs: 0 }, /option commandTimeoutMs/],
    ["more than a minute for it", { sendCommand, commandTimeoutMs: 60_001 }, /option commandTimeoutMs/],
    ["half a millisecond for it", { sendCommand, commandTimeoutMs: 0.5 }, /option commandTimeoutMs/],
    ["a clock that is a number", { sendCommand, now: 5 }, /option now/],
  ])("refuses %s", (_name, options, message) => {
    const create = () => createRedisStores(options as RedisStoresOptions);
    expect(create).toThrow(TypeError);
    expect(create).toThrow(/^createRedisStores/);
    expect(create).toThrow(message);
    expect(create).toThrow(expect.objectContaining({ factory: "createRedisStores" }));
  });

  test.each(["countersign", "a", "A.b_c:d-9", "x".repeat(64), "key", "nonce", "a:keys"])(
    "accepts the prefix %s",
    (prefix) => {
      expect(createRedisStores({ sendCommand, prefix }).idempotency).toBeDefined();
    },
  );

  test.each([
    ["the default", undefined, 90 * dayMs],
    ["its option", 3 * dayMs, 3 * dayMs],
  ])("can be asked for the retention of a key: %s", (_case, retentionMs, expected) => {
    expect(createRedisStores({ sendCommand, retentionMs }).idempotency.retentionMs).toBe(expected);
  });

  test("sends nothing before the first step", () => {
    let sent = 0;
    createRedisStores({ sendCommand: () => Promise.resolve((sent += 1)) });
    expect(sent).toBe(0);
  });

  test.each<[string, unknown]>([
    ["no number", Number.NaN],
    ["infinity", Number.POSITIVE_INFINITY],
    ["half a millisecond", 1_800_000_000_000.5],
    ["a time before 1970", -1],
    ["microseconds", 1_800_000_000_000_000],
    ["text", "1800000000000"],
    ["an empty text, which would mean the server's clock", ""],
    ["nothing", undefined],
    ["a Date", new Date(1_800_000_000_000)],
    ["a promise", Promise.resolve(1_800_000_000_000)],
  ])("refuses a step by a clock that gives %s, and sends nothing", async (_case, time) => {
    const { idempotency, nonces, sent } = onFakeServer({ EVALSHA: "fresh" }, { now: () => time as number });
    const claim = { token: "a", fingerprint: "f", leaseMs: 1_000, recovery: "rerun" } as const;
    await expect(idempotency.claim("k", claim)).rejects.toThrow(/^createRedisStores: option now/);
    const use = { scope: "s", nonce: "n", token: "a", retainMs: 1_000 };
    await expect(nonces.claim(use)).rejects.toThrow(/^createRedisStores: option now/);
    expect(sent).toEqual([]);
  });
});
