import { createRedisStores } from "@countersign/store-redis";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { describeOnRedis } from "@countersign/test-support/servers/engines.ts";
import { pause } from "@countersign/test-support/runs/after-test.ts";
import { newStores } from "./connections.ts";
import { onFakeServer } from "./fake-server.ts";

const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" } as const;
const use = { scope: "s", nonce: "n", token: "a", retainMs: 60_000 };
const unknown = "NOSCRIPT No matching script. Please use EVAL.";

/** By a clock of the test's own: which of two real timers is first, a busy machine decides. */
function useFakeTimers(): void {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());
}

/** Fails unless the step rejects so, and in `ms`; then lets come what is late. */
async function expectToFail(step: PromiseLike<unknown>, ms: number, message: string): Promise<void> {
  const failure = jest.fn();
  void Promise.resolve(step).catch(failure);
  await jest.advanceTimersByTimeAsync(ms - 1);
  expect(failure).not.toHaveBeenCalled();
  await jest.advanceTimersByTimeAsync(1);
  expect(failure).toHaveBeenCalledWith(
    expect.objectContaining({ message: expect.stringContaining(message) }),
  );
  await jest.advanceTimersByTimeAsync(1_000);
}

describe("a step whose command does not come back in time", () => {
  useFakeTimers();

  test.each<[string, unknown]>([
    ["that never answers", () => new Promise(() => {})],
    ["that answers later", () => pause(80).then(() => "fresh")],
    ["that fails later", () => pause(80).then(() => Promise.reject(new Error("the connection is gone")))],
  ])("fails in time with a client %s, and once", async (_case, reply) => {
    const { nonces, sent } = onFakeServer({ EVALSHA: reply }, { commandTimeoutMs: 30 });
    // What comes late must neither reach anybody nor be an unhandled rejection, which would end the test's process.
    const message = "Redis did not answer EVALSHA within 30 ms, and may execute it all the same";
    await expectToFail(nonces.claim(use), 30, message);
    expect(sent).toEqual(["EVALSHA"]);
  });

  test.each<[string, unknown]>([
    ["its text is not answered", { EVALSHA: new Error(unknown), EVAL: () => new Promise(() => {}) }],
    [
      "its text is answered late",
      { EVALSHA: () => pause(60).then(() => new Error(unknown)), EVAL: () => pause(60).then(() => "fresh") },
    ],
  ])("has one deadline for the digest and the text of a script: %s", async (_case, replies) => {
    const { nonces, sent } = onFakeServer(replies as Record<string, unknown>, { commandTimeoutMs: 100 });
    await expectToFail(nonces.claim(use), 100, "Redis did not answer EVAL within 100 ms");
    expect(sent).toEqual(["EVALSHA", "EVAL"]);
  });

  test("does not send the text of a script that the server does not know, when it has failed meanwhile", async () => {
    const { nonces, sent } = onFakeServer(
      { EVALSHA: () => pause(60).then(() => new Error(unknown)), EVAL: "fresh" },
      { commandTimeoutMs: 30 },
    );
    await expectToFail(nonces.claim(use), 30, "Redis did not answer EVALSHA within 30 ms");
    expect(sent).toEqual(["EVALSHA"]);
  });
});

describe("a step whose command goes wrong", () => {
  test.each<[string, unknown]>([
    ["rejects", new Error("ERR max number of clients reached")],
    [
      "throws",
      () => {
        throw new Error("ERR max number of clients reached");
      },
    ],
    ["resolves to its error", () => Promise.resolve(new Error("ERR max number of clients reached"))],
  ])("fails with the error of a client that %s, and is not sent again", async (_case, reply) => {
    const { idempotency, nonces, sent } = onFakeServer({ EVALSHA: reply });
    await expect(idempotency.claim("k", claim)).rejects.toThrow("ERR max number of clients reached");
    await expect(nonces.claim(use)).rejects.toThrow("ERR max number of clients reached");
    expect(sent).toEqual(["EVALSHA", "EVALSHA"]);
  });
});

describe("a reply that is right but for one thing", () => {
  test.each<[string, readonly unknown[]]>([
    ["more behind the answer", [["acquired", "5"], "more"]],
    ["no answer", []],
    ["a fence that no number holds exactly", [["acquired", "9007199254740993"]]],
    ["a fence of 0", [["acquired", "0"]]],
  ])("is no claim: %s", async (_case, answer) => {
    const { idempotency } = createRedisStores({
      sendCommand: async (command) => [command.at(-1), ...answer],
    });
    await expect(idempotency.claim("k", claim)).rejects.toThrow(/do not know/);
  });
});

describe("a script that the server does not know", () => {
  test.each<[string, unknown]>([
    ["the client rejects with it", new Error(unknown)],
    ["the client resolves to it", () => Promise.resolve(new Error(unknown))],
    ["its error is of another realm", () => Promise.reject({ message: unknown })],
  ])("is sent by its text: %s", async (_case, reply) => {
    const { nonces, sent } = onFakeServer({ EVALSHA: reply, EVAL: "fresh" });
    expect(await nonces.claim(use)).toBe("fresh");
    expect(sent.slice(0, 2)).toEqual(["EVALSHA", "EVAL"]);
  });

  test.each<[string, unknown]>([
    ["an error that only speaks of it", new Error("ERR not NOSCRIPT")],
    ["no error", () => Promise.reject("NOSCRIPT")],
    ["nothing", () => Promise.reject(null)],
    ["an error without text", () => Promise.reject({ message: 7 })],
  ])("is not sent by its text after %s: the step may have been taken", async (_case, reply) => {
    const { nonces, sent } = onFakeServer({ EVALSHA: reply, EVAL: "fresh" });
    const failed = await nonces.claim(use).then(
      () => false,
      () => true,
    );
    expect(failed).toBe(true);
    expect(sent).toEqual(["EVALSHA"]);
  });
});

describeOnRedis("a client that is out of step", () => {
  test("never makes a step of what another one was told", async () => {
    const { idempotency: before, nonces: uses, sendCommand, prefix } = await newStores();
    await before.claim("paid", claim);
    await before.complete("paid", "a");
    await before.claim("other", claim);
    await uses.claim({ ...use, nonce: "used" });
    // The server has each script that is asked for below: the refusal of one that it lacks is no reply to anybody's step.
    await before.read("paid");
    await before.heartbeat("other", "a", claim.leaseMs);
    let lastReply: Promise<unknown> = Promise.resolve("OK");
    const { idempotency, nonces } = createRedisStores({
      prefix,
      sendCommand: (command, route) => {
        const reply = lastReply;
        lastReply = sendCommand(command, route);
        return reply;
      },
    });
    const late = { ...claim, token: "late" };
    const steps: [string, () => Promise<unknown>][] = [
      ["a reply of another kind", () => idempotency.claim("paid", late)],
      ["done, of another key", () => idempotency.claim("other", late)],
      ["in flight, of another key", () => idempotency.claim("new", late)],
      ["acquired, of another key", () => idempotency.claim("other", late)],
      ["in flight, of a key that is another's", () => idempotency.read("new")],
      ["a run, of another key", () => idempotency.read("paid")],
      ["done, of another key that is read", () => nonces.claim({ ...use, nonce: "new", token: "late" })],
      ["fresh, of another nonce", () => nonces.claim({ ...use, nonce: "used", token: "late" })],
      ["seen, of another nonce", () => nonces.claim({ ...use, nonce: "newer", token: "late" })],
      ["fresh, of a nonce", () => idempotency.heartbeat("other", "a", 1_000)],
      ["ok, of another step", () => idempotency.complete("other", "late")],
      ["lost, of another step", () => idempotency.complete("new", "late")],
    ];
    for (const [told, step] of steps) {
      const answer = await step().catch(String);
      expect({ told, answer }).toEqual({
        told,
        answer: expect.stringMatching(/the reply to another command|a reply that the stores do not know/),
      });
    }
  });
});

describe("prune()", () => {
  test("removes nothing, and fails when the server does not answer as one", async () => {
    const { idempotency, nonces } = onFakeServer({ PING: "PONG" });
    expect(await idempotency.prune()).toBe(0);
    expect(await nonces.prune()).toBe(0);
    await expect(onFakeServer({}).idempotency.prune()).rejects.toThrow(/unknown command PING/);
    await expect(onFakeServer({ PING: "OK" }).nonces.prune()).rejects.toThrow(/do not know/);
  });
});

describe("a bad argument", () => {
  const stores = onFakeServer({});
  const { idempotency, nonces } = stores;

  test.each<[string, () => Promise<unknown>]>([
    ["a key of 513 characters", () => idempotency.read("x".repeat(513))],
    ["an empty token", () => idempotency.claim("k", { ...claim, token: "" })],
    ["half a millisecond of lease", () => idempotency.heartbeat("k", "a", 0.5)],
    ["an unknown outcome", () => idempotency.resolve("k", "paid" as "done", { fence: 1 })],
    ["no fence", () => idempotency.resolve("k", "done", {} as { fence: number })],
    ["an empty scope", () => nonces.claim({ ...use, scope: "" })],
    ["a negative retention", () => nonces.claim({ ...use, retainMs: -1 })],
  ])("%s is a TypeError, and nothing is sent", async (_name, step) => {
    await expect(step()).rejects.toThrow(TypeError);
    expect(stores.sent).toEqual([]);
  });
});

describeOnRedis("the round trips", () => {
  test("of a payout are one for its nonce and two for its key, once the server has been looked at", async () => {
    const sent: string[] = [];
    const { sendCommand, prefix } = await newStores();
    const { idempotency, nonces } = createRedisStores({
      prefix,
      sendCommand: (command, route) => {
        sent.push(String(command[0]));
        return sendCommand(command, route);
      },
    });
    // The first of each script may have to bring its text.
    await idempotency.claim("warm", claim);
    await idempotency.complete("warm", "a");
    await nonces.claim({ ...use, nonce: "warm" });
    expect(sent.filter((name) => name === "INFO")).toHaveLength(1);
    sent.length = 0;

    expect(await nonces.claim(use)).toBe("fresh");
    expect(sent).toEqual(["EVALSHA"]);
    expect((await idempotency.claim("k", claim)).status).toBe("acquired");
    expect(await idempotency.complete("k", "a")).toBe("ok");
    expect(sent).toEqual(["EVALSHA", "EVALSHA", "EVALSHA"]);
  });

  test("name the one key of each command to the client, and never a replica", async () => {
    const routes: unknown[] = [];
    const { idempotency, nonces } = createRedisStores({
      prefix: "p",
      sendCommand: (command, route) => {
        const [name, _script, count, key] = command;
        routes.push([name, count, key, route]);
        return Promise.resolve(name === "INFO" ? "" : [command.at(-1), "fresh"]);
      },
    });
    await nonces.claim({ ...use, scope: "a:b" });
    await idempotency.read("{k}").catch(() => {});
    expect(routes).toContainEqual([
      "EVALSHA",
      "1",
      "p:nonce:3:a:b:n",
      { key: "p:nonce:3:a:b:n", isReadonly: false },
    ]);
    expect(routes).toContainEqual(["EVALSHA", "1", "p:key:{k}", { key: "p:key:{k}", isReadonly: false }]);
    expect(routes).toContainEqual(["INFO", undefined, undefined, { key: undefined, isReadonly: false }]);
  });
});
