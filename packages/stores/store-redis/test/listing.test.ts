import type { IdempotencyListQuery } from "@countersign/idempotency";
import { createRedisStores } from "@countersign/store-redis";
import { afterAll, describe, expect, test } from "@jest/globals";
import { redisUrl } from "@countersign/test-support/servers/engines.ts";
import { startPrivateRedis } from "@countersign/test-support/servers/private-redis.ts";
import { connectRedis } from "./clients.ts";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { onFakeServer, runId } from "./fake-server.ts";

const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" } as const;

describe("list()", () => {
  test("leaves out what is not under the prefix, whatever SCAN gives", async () => {
    const names = ["countersign:key:a", "other-prefix:key:b", "countersign:key", "countersign:nonce:1:s:n"];
    const { idempotency } = onFakeServer({
      SCAN: ["0", names, runId],
      EVALSHA: ["held", "t", "5", "f", "why", "0", "1", "1800000000000", "hold", ""],
    });
    const { entries } = await idempotency.list({ state: "held", limit: 10 });
    expect(entries.map(({ key }) => key)).toEqual(["a"]);
  });

  test.each<[string, Partial<IdempotencyListQuery>]>([
    ["no key at all", { limit: 0 }],
    ["a cursor that SCAN did not give", { cursor: "run" }],
    ["an empty cursor", { cursor: "" }],
    ["a cursor of SCAN alone, without its server", { cursor: "7" }],
    ["a cursor with half a run_id", { cursor: `7.${runId.slice(1)}` }],
    ["a cursor with more behind it", { cursor: `7.${runId} COUNT 1` }],
    ["a cursor with a line break", { cursor: `7.${runId}\n` }],
    ["a cursor that is null", { cursor: null as unknown as string }],
  ])("refuses %s before it sends anything", async (_case, query) => {
    const { idempotency, sent } = onFakeServer({ SCAN: ["0", [], runId] });
    await expect(idempotency.list({ state: "running", limit: 10, ...query })).rejects.toThrow(TypeError);
    expect(sent).toEqual([]);
  });

  test.each<[string, unknown]>([
    ["nothing", null],
    ["no triple", ["0", runId]],
    ["four", ["0", [], runId, []]],
    ["no list of keys", ["0", "countersign:key:a", runId]],
    ["keys that are no texts", ["0", [7], runId]],
    ["a cursor that is a word", ["end", [], runId]],
    ["an empty cursor", ["", [], runId]],
    ["a cursor that is an object", [{}, [], runId]],
    ["a run_id that is an object", ["0", [], {}]],
  ])("throws when SCAN answers with %s: an end of the list would hide what follows", async (_case, reply) => {
    const { idempotency } = onFakeServer({ SCAN: () => Promise.resolve(reply) });
    await expect(idempotency.list({ state: "running", limit: 10 })).rejects.toThrow(/gave no|do not know/);
  });

  test("gives a key once that SCAN gives twice, and passes the cursor on", async () => {
    const { idempotency } = onFakeServer({
      SCAN: [
        Buffer.from("17592186044415"),
        ["countersign:key:a", Buffer.from("countersign:key:a")],
        Buffer.from(runId),
      ],
      EVALSHA: ["held", "t", "5", "f", "why", "0", "1", "1800000000000", "hold", ""],
    });
    expect(await idempotency.list({ state: "held", limit: 10, cursor: `8.${runId}` })).toEqual({
      entries: [
        { key: "a", record: { state: "held", token: "t", fence: 5, fingerprint: "f", reason: "why" } },
      ],
      cursor: `17592186044415.${runId}`,
    });
  });

  test.each<[string, string]>([
    ["of another process", runId.replace("0", "1")],
    ["that does not show INFO any more", ""],
  ])("refuses the cursor of one server on one %s: keys would be missed", async (_case, other) => {
    const { idempotency } = onFakeServer({ SCAN: ["0", [], other] });
    const again = idempotency.list({ state: "running", limit: 10, cursor: `8.${runId}` });
    await expect(again).rejects.toThrow(TypeError);
    await expect(again).rejects.toThrow(/cursor is of another server/);
  });

  test.each<[string, string]>([
    ["hides it", ""],
    ["gives something else for it", "ffff"],
  ])("gives one page and no cursor on a server that %s: the run_id", async (_case, other) => {
    const { idempotency: short } = onFakeServer({ SCAN: ["0", [], other] });
    expect(await short.list({ state: "running", limit: 10 })).toEqual({ entries: [], cursor: undefined });
    const { idempotency: long } = onFakeServer({ SCAN: ["8", [], other] });
    await expect(long.list({ state: "running", limit: 10 })).rejects.toThrow(/needs run_id/);
  });

  test("refuses a client that changes the names of keys otherwise than by a prefix", async () => {
    const { idempotency } = onFakeServer({ NAME: "countersign:key:#", SCAN: ["0", [], runId] });
    await expect(idempotency.list({ state: "running", limit: 10 })).rejects.toThrow(
      /changes the names of keys/,
    );
  });

  test("takes no page that is the reply to another command", async () => {
    const { idempotency } = createRedisStores({
      sendCommand: ([, , count, key = "", ...args]) =>
        Promise.resolve(count === "0" ? ["another call", ["0", [], runId]] : [args.at(-1), key]),
    });
    await expect(idempotency.list({ state: "running", limit: 10 })).rejects.toThrow(
      /reply to another command/,
    );
  });
});

const server = redisUrl === undefined ? undefined : await startPrivateRedis();
const onOwnServer = server === undefined ? describe.skip : describe;

afterAll(() => server?.close());

onOwnServer("list() on a server with other keys", () => {
  test("gives the keys of this prefix alone, and no names that the store cannot have written", async () => {
    const { sendCommand, close } = await connectRedis(server?.url ?? "");
    afterTest(close);
    const set = (name: string) => sendCommand(["SET", name, "x"], { key: name, isReadonly: false });
    const { idempotency } = createRedisStores({ sendCommand, prefix: "a.b" });
    // What an escape that the store does not write would stand for.
    await idempotency.claim("A", claim);
    const { idempotency: other } = createRedisStores({ sendCommand, prefix: "aXb" });
    await other.claim("of another prefix", claim);
    for (const name of [
      "a.b:key:",
      "a.b:key:\\",
      "a.b:key:\\u0041",
      "a.b:key:\\n\n",
      `a.b:key:${"x".repeat(513)}`,
    ]) {
      await set(name);
    }
    await idempotency.claim("{a}*\\", claim);
    const { entries, cursor } = await idempotency.list({ state: "running", limit: 1_000 });
    expect(entries.map((entry) => entry.key)).toHaveLength(2);
    expect(new Set(entries.map((entry) => entry.key))).toEqual(new Set(["{a}*\\", "A"]));
    expect(cursor).toBeUndefined();
  });

  test("fails on a damaged record rather than leave it out", async () => {
    const { sendCommand, close } = await connectRedis(server?.url ?? "");
    afterTest(close);
    const { idempotency } = createRedisStores({ sendCommand, prefix: "damaged" });
    await idempotency.claim("k", claim);
    const name = "damaged:key:k";
    await sendCommand(["HDEL", name, "until"], { key: name, isReadonly: false });
    await expect(idempotency.list({ state: "held", limit: 1_000 })).rejects.toThrow(/damaged/);
  });
});
