// Row 16: a store that can keep no more.
import { afterAll, describe, expect } from "@jest/globals";
import { steadyTest as test } from "../support/runs/steadily.ts";
import { createClient } from "redis";
import { startPrivateRedis } from "../support/servers/private-redis.ts";
import { describeEngines, newKey, openGround } from "./engines.ts";
import { pay, payTo, startPayer } from "./payers.ts";
import { payUntilDecided } from "./timing.ts";

const row = "row 16, store full: 503; nothing alive evicted";

describeEngines(["memory"], (ground) => {
  test(row, async () => {
    const engine = { ...ground().engine, max: 4 };
    const payer = await startPayer({ engine }, { armed: [] });
    const [paid, running, refused] = [[newKey(), newKey(), newKey()], newKey(), newKey()];
    for (const key of paid) expect(await pay(payer, key)).toMatchObject({ status: 200 });
    payer.arm("handler");
    const { answer } = await payTo("handler", payer, running);
    for (let attempt = 0; attempt < 3; attempt++) {
      expect(await pay(payer, refused)).toMatchObject({ status: 503, retryAfter: "1" });
    }
    for (const key of paid) expect(await pay(payer, key)).toMatchObject({ status: 409 });
    expect(await pay(payer, running)).toMatchObject({ status: 503, code: "in-flight" });
    payer.go("handler");
    expect(await answer).toMatchObject({ status: 200 });
    expect(await Promise.all([...paid, running, refused].map((key) => ground().payments(key)))).toEqual([
      1, 1, 1, 1, 0,
    ]);
  });
});

describeEngines(["sqlite"], (ground) => {
  test(row, async () => {
    const engine = { ...ground().engine, maxPages: 40 };
    const payer = await startPayer({ engine });
    const paid: string[] = [];
    for (;;) {
      const key = newKey().padEnd(500, "-");
      const { status } = await pay(payer, key);
      if (status !== 200) {
        // Its claim has found no room, or its record: then it was paid, and is no retry's.
        expect(status).toBe(503);
        const made = await ground().payments(key);
        expect((await pay(payer, key)).status).not.toBe(200);
        expect([made, await ground().payments(key)]).toEqual([made, made]);
        expect(made).toBeLessThanOrEqual(1);
        break;
      }
      paid.push(key);
    }
    expect(paid.length).toBeGreaterThan(5);
    for (const key of paid) expect(await pay(payer, key)).toMatchObject({ status: 409 });
    for (const key of paid) expect(await ground().payments(key)).toBe(1);
  });
});

const redis = await startPrivateRedis({ args: ["--maxmemory-policy", "noeviction"] });

afterAll(() => redis?.close());

(redis === undefined ? describe.skip : describe)("on Redis", () => {
  test(`${row}; what runs is recorded when there is room again`, async () => {
    const url = redis?.url ?? "";
    const ground = await openGround("redis", url);
    const operator = createClient({ url }).on("error", () => {});
    await operator.connect();
    try {
      const payer = await startPayer({ engine: ground.engine }, { armed: [] });
      const [paid, running, refused] = [newKey(), newKey(), newKey()];
      expect(await pay(payer, paid)).toMatchObject({ status: 200 });
      payer.arm("handler");
      const { answer } = await payTo("handler", payer, running);
      await operator.configSet("maxmemory", "1mb");
      expect(await pay(payer, refused)).toMatchObject({ status: 503, retryAfter: "1" });
      expect(await pay(payer, paid)).toMatchObject({ status: 409 });
      expect(await pay(payer, running)).toMatchObject({ status: 503 });
      payer.go("handler");
      expect([200, 503]).toContain((await answer).status);
      await operator.configSet("maxmemory", "0");
      expect((await payUntilDecided(payer, running)).at(-1)).toMatchObject({ status: 409 });
      expect((await payUntilDecided(payer, refused)).at(-1)).toMatchObject({ status: 200 });
      expect(await Promise.all([paid, running, refused].map((key) => ground.payments(key)))).toEqual([
        1, 1, 1,
      ]);
    } finally {
      operator.destroy();
      await ground.close();
    }
  });
});
