// Rows 10 to 12: many at once, the same and not the same.
import { expect } from "@jest/globals";
import { steadyTest as test } from "../support/runs/steadily.ts";
import { describeEngines, newKey } from "./engines.ts";
import { pay, payTo, spawnPayer, startPayer, type PayoutAnswer, type RunningPayer } from "./payers.ts";
import { payUntilDecided } from "./timing.ts";
import { setTimeout as sleep } from "node:timers/promises";

const count = (answers: readonly PayoutAnswer[], status: number) =>
  answers.filter((answer) => answer.status === status).length;

describeEngines(["memory", "sqlite", "redis", "postgres"], (ground, kind) => {
  const described = kind === "memory" ? "1 process x 1,000" : "2 processes x 500";

  test(`row 10, ${described} concurrent identical requests: 1 pay, one 2xx, no 409 before the commit`, async () => {
    const key = newKey();
    const config = {
      engine: ground().engine,
      times: { waitMs: 5_000, leaseMs: 10_000, storeTimeoutMs: 5_000 },
    };
    const payers = await Promise.all([
      spawnPayer(config),
      ...(kind === "memory" ? [] : [spawnPayer(config)]),
    ]);
    // Behind a thousand requests, the first connections of a busy machine come too late for all of them.
    await Promise.all(payers.map((payer) => payUntilDecided(payer, newKey())));
    for (const payer of payers) payer.arm("handler");
    const early: PayoutAnswer[] = [];
    let isCommitAllowed = false;
    const request = async (payer: RunningPayer) => {
      const answer = await pay(payer, key);
      if (!isCommitAllowed) early.push(answer);
      return answer;
    };
    const share = 1_000 / payers.length;
    const requests = payers.flatMap((payer) => Array.from({ length: share }, () => request(payer)));
    await Promise.race(payers.map((payer) => payer.reached("handler")));
    // Long enough for the others to come in and to wait.
    await sleep(1_000);
    isCommitAllowed = true;
    for (const payer of payers) payer.go("handler");
    const answers = await Promise.all(requests);
    expect(early).toEqual([]);
    expect({ paid: count(answers, 200), refused: count(answers, 409) + count(answers, 503) }).toEqual({
      paid: 1,
      refused: 999,
    });
    // How many see it before their wait ends, and are not sent away to come again, is the machine's to say.
    expect(count(answers, 409)).toBeGreaterThan(0);
    expect(await ground().payments(key)).toBe(1);
    expect(await pay(payers[0], key)).toMatchObject({ status: 409 });
  });
});

describeEngines(["memory", "sqlite", "redis", "postgres"], (ground, kind) => {
  test("row 11, first attempt fails while duplicates wait: a waiter claims and runs; 1 pay", async () => {
    const key = newKey();
    const config = { engine: ground().engine, times: { waitMs: 5_000, leaseMs: 6_000 } };
    const owner = await startPayer(config, { armed: ["handler"] });
    const other = kind === "memory" ? owner : await startPayer(config);
    const { answer: first } = await payTo("handler", owner, key, { fault: "fail" });
    const waiters = [owner, other, owner, other].map((payer) => pay(payer, key));
    await sleep(200);
    owner.go("handler");
    expect(await first).toMatchObject({ status: 500 });
    const answers = await Promise.all(waiters);
    expect([count(answers, 200), count(answers, 409)]).toEqual([1, 3]);
    expect(await ground().payments(key)).toBe(1);
  });

  test("row 12, same key, other amount, before: the refused one leaves nothing; 1 pay", async () => {
    const key = newKey();
    const payer = await startPayer({ engine: ground().engine });
    expect(await pay(payer, key, { amount: 200, fault: "refuse" })).toMatchObject({ status: 422 });
    expect(await pay(payer, key, { amount: 100 })).toMatchObject({ status: 200 });
    expect(await pay(payer, key, { amount: 200 })).toMatchObject({
      status: 409,
      code: "idempotency-key-reused",
    });
    expect(await ground().payments(key)).toBe(1);
  });

  test("row 12, same key, other amount, during and after: never runs twice", async () => {
    const key = newKey();
    const config = { engine: ground().engine };
    const owner = await startPayer(config, { armed: ["handler"] });
    const other = kind === "memory" ? owner : await startPayer(config);
    const { answer: first } = await payTo("handler", owner, key, { amount: 100 });
    for (const payer of [owner, other]) {
      expect(await pay(payer, key, { amount: 200 })).toMatchObject({ status: 503, code: "in-flight" });
    }
    owner.go("handler");
    expect(await first).toMatchObject({ status: 200 });
    for (const payer of [owner, other]) {
      expect(await pay(payer, key, { amount: 200 })).toMatchObject({ code: "idempotency-key-reused" });
      expect(await payUntilDecided(payer, key)).toMatchObject([{ status: 409, code: "already-processed" }]);
    }
    expect(await ground().payments(key)).toBe(1);
  });
});
