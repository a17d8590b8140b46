import { createRedisStores } from "@countersign/store-redis";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { isolatedName, redisUrl } from "@countersign/test-support/servers/engines.ts";
import { startPrivateRedis } from "@countersign/test-support/servers/private-redis.ts";
import { connectRedis } from "./clients.ts";
import { afterTest, testClock } from "@countersign/test-support/runs/after-test.ts";

const server = redisUrl === undefined ? undefined : await startPrivateRedis();
const onOwnServer = server === undefined ? describe.skip : describe;
const keyless = { key: undefined, isReadonly: false } as const;
const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" } as const;
const use = { scope: "s", nonce: "n", token: "a", retainMs: 60_000 };

afterAll(() => server?.close());

onOwnServer("a server that has no memory left", () => {
  let stores: ReturnType<typeof createRedisStores>;
  let clock: ReturnType<typeof testClock>;
  let sendKeyless: (...command: string[]) => Promise<unknown>;
  const setMemory = (limit: string) => sendKeyless("CONFIG", "SET", "maxmemory", limit);

  beforeEach(async () => {
    const { sendCommand, close } = await connectRedis(server?.url ?? "");
    afterTest(close);
    clock = testClock();
    // No command hangs here: a busy machine is not the subject.
    const commandTimeoutMs = 60_000;
    stores = createRedisStores({
      sendCommand,
      prefix: isolatedName("full"),
      now: clock.now,
      commandTimeoutMs,
    });
    sendKeyless = (...command) => sendCommand(command, keyless);
    for (const key of ["complete", "release", "hold", "beat", "resolve", "expired"]) {
      await stores.idempotency.claim(key, claim);
    }
    await stores.idempotency.hold("resolve", "a", "why");
    await stores.nonces.claim(use);
    await setMemory("1");
  });

  afterEach(() => setMemory("0"));

  test("settles every key that is there: a payment that was made is marked as done", async () => {
    const { idempotency, nonces } = stores;
    expect(await idempotency.complete("complete", "a")).toBe("ok");
    expect(await idempotency.claim("complete", { ...claim, token: "b" })).toMatchObject({ status: "done" });
    expect(await idempotency.release("release", "a")).toBe("ok");
    expect(
      await idempotency.hold("hold", "a", "a reason that is longer than the place of the empty one"),
    ).toBe("ok");
    expect(await idempotency.heartbeat("beat", "a", 120_000)).toBe("ok");
    expect(await idempotency.claim("beat", claim)).toMatchObject({ status: "acquired" });
    const rival = { ...claim, token: "b", leaseMs: 1_000 };
    expect(await idempotency.claim("beat", rival)).toMatchObject({ status: "in-flight", remainingMs: 1_000 });
    const fence = (await idempotency.read("resolve"))?.fence ?? 0;
    expect(await idempotency.resolve("resolve", "done", { fence })).toBe("ok");
    expect(await nonces.claim(use)).toBe("fresh");
    expect(await nonces.claim({ ...use, token: "b" })).toBe("seen");
  });

  test("lists its keys, also where it has to learn the scripts for it", async () => {
    await sendKeyless("SCRIPT", "FLUSH");
    const { entries } = await stores.idempotency.list({ state: "held", limit: 1_000 });
    expect(entries.map(({ key }) => key)).toEqual(["resolve"]);
  });

  test("gives an expired run to the next attempt, and holds it under recovery hold", async () => {
    clock.advance(60_000);
    const { idempotency } = stores;
    expect(await idempotency.claim("expired", { ...claim, token: "b" })).toMatchObject({
      status: "acquired",
    });
    expect(await idempotency.claim("beat", { ...claim, token: "b", recovery: "hold" })).toMatchObject({
      status: "held",
      reason: "lease-expired",
    });
  });
});

onOwnServer("the clock of a test", () => {
  test("alone tells when a nonce is over, however much real time went by", async () => {
    const { sendCommand, close } = await connectRedis(server?.url ?? "");
    afterTest(close);
    const clock = testClock();
    const { nonces } = createRedisStores({ sendCommand, prefix: isolatedName("clock"), now: clock.now });
    await nonces.claim({ ...use, retainMs: 20 });
    await new Promise((resolve) => {
      setTimeout(resolve, 60);
    });
    expect(await nonces.claim({ ...use, token: "b", retainMs: 20 })).toBe("seen");
    clock.advance(21);
    expect(await nonces.claim({ ...use, token: "b", retainMs: 20 })).toBe("fresh");
  });
});
