import { createRedisStores } from "@countersign/store-redis";
import { afterAll, describe, expect } from "@jest/globals";
import { isolatedName, redisUrl } from "@countersign/test-support/servers/engines.ts";
import { startPrivateRedis } from "@countersign/test-support/servers/private-redis.ts";
import { startTcpProxy } from "@countersign/test-support/servers/tcp-proxy.ts";
import { type Connect, clients, connectRedis, queueingClients } from "./clients.ts";
import { afterTest, pause } from "@countersign/test-support/runs/after-test.ts";
import { eventually } from "./connections.ts";
import { eventually as until } from "@countersign/test-support/runs/eventually.ts";
import { steadyTest as test } from "@countersign/test-support/runs/steadily.ts";

const server = redisUrl === undefined ? undefined : await startPrivateRedis();
const onOwnServer = server === undefined ? describe.skip : describe;
const key = "payout-7";
const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" } as const;
const use = { scope: "s", nonce: "n", token: "a", retainMs: 60_000 };
const keyless = { key: undefined, isReadonly: false } as const;

afterAll(() => server?.close());

/** Stores behind a line that goes wrong, and the same data over one that does not. */
async function setUp(connect: Connect, commandTimeoutMs = 400) {
  const proxy = await startTcpProxy(server?.port ?? 0);
  afterTest(() => proxy.close());
  const connection = await connect(`redis://127.0.0.1:${proxy.port}`);
  afterTest(connection.close);
  const direct = await connectRedis(server?.url ?? "");
  afterTest(direct.close);
  const prefix = isolatedName("faults");
  const sent: string[] = [];
  const stores = createRedisStores({
    prefix,
    commandTimeoutMs,
    sendCommand: (command, route) => {
      sent.push(String(command[0]));
      return connection.sendCommand(command, route);
    },
  });
  const witness = createRedisStores({ sendCommand: direct.sendCommand, prefix });
  // The scripts are known, the server was looked at.
  await eventually(() => stores.nonces.claim({ ...use, nonce: "first" }));
  await eventually(() => stores.idempotency.claim("first", claim));
  sent.length = 0;
  return { ...stores, witness: witness.idempotency, proxy, sent, send: direct.sendCommand };
}

async function untilRun(read: () => Promise<{ state: string } | undefined>): Promise<void> {
  await until(async () => (await read()) !== undefined);
}

describe.each(clients)("over %s", (client, connect) => {
  onOwnServer("a step whose reply is lost", () => {
    test("fails in time, and is the same step when it is repeated with its token", async () => {
      const { idempotency, nonces, witness, proxy } = await setUp(connect);
      proxy.dropReplies(true);
      await expect(idempotency.claim(key, claim)).rejects.toThrow("within 400 ms");
      await expect(nonces.claim(use)).rejects.toThrow("within 400 ms");
      const before = await witness.read(key);
      expect(before).toMatchObject({ state: "running", token: "a" });
      proxy.restore();

      expect(await eventually(() => idempotency.claim(key, claim))).toEqual({
        status: "acquired",
        fence: before?.fence,
      });
      expect(await eventually(() => nonces.claim(use))).toBe("fresh");
      expect(await nonces.claim({ ...use, token: "b" })).toBe("seen");
      expect((await idempotency.claim(key, { ...claim, token: "b" })).status).toBe("in-flight");

      proxy.dropReplies(true);
      await expect(idempotency.complete(key, "a")).rejects.toThrow("within 400 ms");
      proxy.restore();
      expect(await eventually(() => idempotency.complete(key, "a"))).toBe("ok");
      expect((await idempotency.claim(key, { ...claim, token: "b" })).status).toBe("done");
    });

    test("is sent again by the client or rejected when the line breaks, and is never its own rival", async () => {
      const { idempotency, nonces, witness, proxy } = await setUp(connect, 10_000);
      proxy.dropReplies(true);
      const claimed = idempotency.claim(key, claim).catch(() => "rejected" as const);
      const used = nonces.claim(use).catch(() => "rejected" as const);
      await untilRun(() => witness.read(key));
      const fence = (await witness.read(key))?.fence;
      await pause(20);
      proxy.restore();
      if (client.startsWith("ioredis")) {
        expect(await claimed).toEqual({ status: "acquired", fence });
        expect(await used).toBe("fresh");
      } else {
        expect(await claimed).toBe("rejected");
        expect(await used).toBe("rejected");
      }
      expect(await eventually(() => idempotency.claim(key, claim))).toEqual({ status: "acquired", fence });
      expect(await eventually(() => nonces.claim(use))).toBe("fresh");
    });
  });

  onOwnServer("a slow line", () => {
    test("fails the step in time; what is executed late belongs to its token, which can release it", async () => {
      const { idempotency, witness, proxy } = await setUp(connect);
      proxy.delay(1_200);
      await expect(idempotency.claim(key, claim)).rejects.toThrow("did not answer");
      expect(await witness.read(key)).toBeUndefined();
      await untilRun(() => witness.read(key));
      proxy.restore();
      expect(await eventually(() => idempotency.release(key, "a"))).toBe("ok");
      expect((await idempotency.claim(key, { ...claim, token: "b" })).status).toBe("acquired");
    });
  });

  onOwnServer("a line that is cut and refused for a while", () => {
    test("fails every step in the meantime, and is found again by itself", async () => {
      const { idempotency, proxy } = await setUp(connect);
      proxy.refuse(true);
      proxy.cut();
      for (const step of [
        () => idempotency.claim(key, claim),
        () => idempotency.read("first"),
        () => idempotency.heartbeat("first", "stranger", 1_000),
      ]) {
        await expect(step()).rejects.toThrow();
      }
      proxy.restore();
      expect(await eventually(() => idempotency.claim(key, claim))).toMatchObject({ status: "acquired" });
    });
  });

  onOwnServer("a server that has forgotten the scripts", () => {
    test("gets the text of each once, and the step is taken once", async () => {
      const { idempotency, nonces, sent, send } = await setUp(connect);
      await send(["SCRIPT", "FLUSH"], keyless);
      expect((await idempotency.claim(key, claim)).status).toBe("acquired");
      expect((await idempotency.claim(key, { ...claim, token: "b" })).status).toBe("in-flight");
      expect(await nonces.claim(use)).toBe("fresh");
      expect(await nonces.claim({ ...use, token: "b" })).toBe("seen");
      const [known, unknown] = [["EVALSHA"], ["EVALSHA", "EVAL"]];
      const [add, addAgain, nonce, nonceAgain] = [unknown, known, unknown, known];
      expect(sent).toEqual([...add, ...addAgain, ...nonce, ...nonceAgain]);
    });
  });
});

describe.each(queueingClients)("over %s, with commands that wait for a connection", (_client, connect) => {
  onOwnServer("steps that are sent in the moment when the line breaks", () => {
    test("are answered rightly or rejected, none with the answer to another", async () => {
      const { nonces, proxy } = await setUp(connect);
      proxy.dropReplies(true);
      await expect(nonces.claim({ ...use, nonce: "lost" })).rejects.toThrow("within 400 ms");
      proxy.restore();
      // Every other one was used before.
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, index) => {
          const nonce = index % 2 === 0 ? "first" : `new-${index}`;
          const answer = nonces.claim({ ...use, nonce, token: `late-${index}` });
          return answer.catch(() => "rejected");
        }),
      );
      for (const [index, answer] of answers.entries()) {
        const right = index % 2 === 0 ? "seen" : "fresh";
        expect([right, "rejected"]).toContain(answer);
      }
    });
  });
});
