import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type GuardNotice, noticeChannelName } from "@countersign/core";
import { type RedisStores, createRedisStores } from "@countersign/store-redis";
import { afterAll, describe, expect, test } from "@jest/globals";
import { redisUrl } from "@countersign/test-support/servers/engines.ts";
import { startPrivateRedis } from "@countersign/test-support/servers/private-redis.ts";
import { connectRedis } from "./clients.ts";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { goodInfo, infoOf, onFakeServer } from "./fake-server.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";

const use = { scope: "s", nonce: "n", token: "a", retainMs: 60_000 };
const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" } as const;

function notices(): GuardNotice[] {
  const received: GuardNotice[] = [];
  // The channel is the process's: a store of an earlier test file may still publish.
  const listen = (message: unknown): void => {
    const notice = message as GuardNotice;
    if (notice.guard === "createRedisStores") received.push(notice);
  };
  subscribe(noticeChannelName, listen);
  afterTest(() => unsubscribe(noticeChannelName, listen));
  return received;
}

/** The codes that the first step on a server with this INFO publishes. */
async function codesOf(info: unknown): Promise<string[]> {
  const received = notices();
  const { nonces } = onFakeServer({ EVALSHA: "fresh", INFO: info });
  expect(await nonces.claim(use)).toBe("fresh");
  await nextTurn();
  expect(received.every(({ message }) => message !== "")).toBe(true);
  return received.map(({ code }) => code);
}

describe("the look at the server", () => {
  test.each<[string, unknown, string[]]>([
    ["that is as it should be", goodInfo, []],
    ["as bytes", Buffer.from(goodInfo), []],
    ["with lines that end in LF alone", goodInfo.replaceAll("\r", ""), []],
    ["of version 6.2", infoOf({ redis_version: "6.2.0" }), []],
    ["of version 10.0", infoOf({ redis_version: "10.0.1" }), []],
    ["of Valkey", infoOf({ redis_version: "7.2.4", valkey_version: "8.1.1" }), []],
    ["of version 6.0", infoOf({ redis_version: "6.0.16" }), ["redis-too-old"]],
    ["of version 5.9", infoOf({ redis_version: "5.9.9" }), ["redis-too-old"]],
    ["that may evict any key", infoOf({ maxmemory_policy: "allkeys-lru" }), ["redis-may-evict"]],
    [
      "that may evict what expires, as paid keys do",
      infoOf({ maxmemory_policy: "volatile-ttl" }),
      ["redis-may-evict"],
    ],
    ["without an append-only file", infoOf({ aof_enabled: "0" }), ["redis-forgets-on-restart"]],
    ["that is a replica", infoOf({ role: "slave" }), ["redis-is-replica"]],
    [
      "with all of it wrong",
      infoOf({ redis_version: "5.0.7", maxmemory_policy: "allkeys-lru", aof_enabled: "0", role: "slave" }),
      ["redis-too-old", "redis-may-evict", "redis-forgets-on-restart", "redis-is-replica"],
    ],
    ["that forbids it", new Error("NOPERM this user has no permissions to run INFO"), ["redis-not-checked"]],
    ["that says nothing of its memory", "redis_version:7.0.15\r\n", ["redis-not-checked"]],
    ["that says nothing of its version", "maxmemory_policy:noeviction\r\n", ["redis-not-checked"]],
    ["that answers no text", 7, ["redis-not-checked"]],
  ])("%s publishes what can lose a record, and stops no step", async (_case, info, codes) => {
    expect(await codesOf(info)).toEqual(codes);
  });

  test("names what was found and what to set", async () => {
    const received = notices();
    const info = infoOf({ maxmemory_policy: "allkeys-lru", redis_version: "6.0.16" });
    await onFakeServer({ EVALSHA: "fresh", INFO: info }).nonces.claim(use);
    await nextTurn();
    expect(received.map(({ message }) => message)).toEqual([
      expect.stringMatching(/6\.0\.16 .* 6\.2/),
      expect.stringMatching(/allkeys-lru.* set noeviction/),
    ]);
  });

  test("that failed is taken again by the next step, is told once, and rests when it was taken", async () => {
    const received = notices();
    const answers = [new Error("the connection is gone"), infoOf({ aof_enabled: "0" })];
    const { nonces, sent } = onFakeServer({ EVALSHA: "fresh", INFO: () => answers.shift() });
    for (const _step of [1, 2, 3, 4]) {
      expect(await nonces.claim(use)).toBe("fresh");
      await nextTurn();
    }
    expect(received.map(({ code }) => code)).toEqual(["redis-not-checked", "redis-forgets-on-restart"]);
    expect(sent).toEqual(["EVALSHA", "INFO", "EVALSHA", "INFO", "EVALSHA", "EVALSHA"]);
  });

  test("is one for steps that come together, also after it has failed", async () => {
    let asked = 0;
    const { nonces } = onFakeServer({
      EVALSHA: "fresh",
      INFO: () => nextTurn().then(() => new Error(`ERR ${(asked += 1)}`)),
    });
    for (const expected of [1, 2]) {
      await Promise.all(Array.from({ length: 10 }, () => nonces.claim(use)));
      await eventually(() => asked >= expected);
      expect(asked).toBe(expected);
      // Until its answer has been read.
      await nextTurn();
    }
  });

  test("that always fails becomes rarer: after 1, 2, 4 and 8 further steps", async () => {
    const received = notices();
    const { nonces, sent } = onFakeServer({ EVALSHA: "fresh", INFO: new Error("NOPERM") });
    const askedAt: number[] = [];
    for (let step = 1; step <= 20; step++) {
      await nonces.claim(use);
      await nextTurn();
      if (sent.at(-1) === "INFO") askedAt.push(step);
    }
    expect(askedAt).toEqual([1, 2, 4, 8, 16]);
    expect(received.map(({ code }) => code)).toEqual(["redis-not-checked"]);
  });

  test("is taken once for both stores, and not before a step was answered", async () => {
    const { idempotency, nonces, sent } = onFakeServer({
      EVALSHA: (() => {
        let calls = 0;
        return () => {
          calls += 1;
          if (calls === 1) throw new Error("connect ECONNREFUSED");
          return calls === 2 ? "fresh" : "7";
        };
      })(),
    });
    await expect(nonces.claim(use)).rejects.toThrow("connect ECONNREFUSED");
    expect(sent).toEqual(["EVALSHA"]);
    await nonces.claim(use);
    await idempotency.complete("k", "a");
    await idempotency.complete("k", "a");
    expect(sent).toEqual(["EVALSHA", "EVALSHA", "INFO", "EVALSHA", "EVALSHA"]);
  });

  test("holds no step up when it is not answered", async () => {
    const received = notices();
    const { nonces } = onFakeServer(
      { EVALSHA: "fresh", INFO: () => new Promise(() => {}) },
      { commandTimeoutMs: 20 },
    );
    expect(await nonces.claim(use)).toBe("fresh");
    expect(received).toEqual([]);
    await eventually(() => received.length > 0);
    expect(received.map(({ code }) => code)).toEqual(["redis-not-checked"]);
  });
});

const server =
  redisUrl === undefined ? undefined : await startPrivateRedis({ args: ["--repl-diskless-sync-delay", "0"] });
const onOwnServer = server === undefined ? describe.skip : describe;

afterAll(() => server?.close());

/** Stores over a connection of their own, with what else a test sends over it. */
async function storesOn(url: string | undefined, credentials?: string) {
  const { sendCommand, close } = await connectRedis(
    (url ?? "").replace("redis://", `redis://${credentials === undefined ? "" : `${credentials}@`}`),
  );
  afterTest(close);
  const send = (...command: string[]) => sendCommand(command, { key: undefined, isReadonly: false });
  const stores: RedisStores = createRedisStores({ sendCommand });
  return { ...stores, send };
}

onOwnServer("a real server", () => {
  test("that evicts and has no append-only file is told", async () => {
    const received = notices();
    const { nonces, send } = await storesOn(server?.url);
    await send("CONFIG", "SET", "maxmemory-policy", "volatile-lru");
    await nonces.claim(use);
    await eventually(() => received.length >= 2);
    expect(received.map(({ code }) => code)).toEqual(["redis-may-evict", "redis-forgets-on-restart"]);
  });

  test("gives a user with the rights of the page all steps, and INFO is not one of them", async () => {
    const received = notices();
    const { send } = await storesOn(server?.url);
    const rights = "+evalsha +eval +time +hmget +hset +pexpire +persist +get +set +scan +ping +hello +client";
    await send("ACL", "SETUSER", "payer", "reset", "on", ">secret", "~countersign:*", ...rights.split(" "));
    const { idempotency, nonces } = await storesOn(server?.url, "payer:secret");
    const keys = ["a", "b", "c"];
    for (const key of keys) {
      expect((await idempotency.claim(key, { ...claim, token: key })).status).toBe("acquired");
      expect(await idempotency.heartbeat(key, key, 60_000)).toBe("ok");
    }
    expect(await idempotency.complete("a", "a")).toBe("ok");
    expect(await idempotency.release("b", "b")).toBe("ok");
    expect((await idempotency.claim("b", { ...claim, token: "late" })).status).toBe("acquired");
    expect(await idempotency.hold("c", "c", "why")).toBe("ok");
    const fence = (await idempotency.read("c"))?.fence ?? 0;
    expect(await idempotency.resolve("c", "done", { fence })).toBe("ok");
    expect((await idempotency.list({ state: "done", limit: 1_000 })).entries).toHaveLength(2);
    expect(await idempotency.prune()).toBe(0);
    expect(await nonces.claim({ ...use, nonce: "of a user" })).toBe("fresh");
    expect(received.map(({ code }) => code)).toEqual(["redis-not-checked"]);
  });

  test("that is a replica refuses every claim", async () => {
    const replica = await startPrivateRedis({ args: ["--replicaof", `127.0.0.1 ${server?.port ?? 0}`] });
    afterTest(() => replica?.close());
    const { idempotency, nonces, send } = await storesOn(replica?.url);
    await eventually(async () => String(await send("INFO", "replication")).includes("master_link_status:up"));
    await expect(idempotency.claim("of a replica", claim)).rejects.toThrow(/READONLY|replica/);
    await expect(nonces.claim({ ...use, nonce: "of a replica" })).rejects.toThrow(/READONLY|replica/);
  });
});
