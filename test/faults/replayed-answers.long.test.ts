// I15 under SIGKILL: what is answered for a key that is done, and how often it was paid, whatever had been kept by then.
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "@jest/globals";
import { steadyTest as test } from "../support/runs/steadily.ts";
import { describeEngines, newKey, type Ground } from "./engines.ts";
import type { PayerConfig, Point } from "./payer-app.mjs";
import { killedAt, pay, startPayer, type PayerProcess, type PayoutAnswer } from "./payers.ts";

type Rules = Pick<PayerConfig, "recovery">;

/** A payout in a process that dies at the point; the process behind it, an operator's, and the attempts whose answers are kept. */
async function paidUntil(point: Point, ground: Ground, rules: Rules) {
  const key = newKey();
  const config = { engine: ground.engine, givesAgain: true, ...rules };
  const { second } = await killedAt(point, config, key);
  const operator = await startPayer(config);
  const kept: string[] = [];
  for (const token of await ground.payers(key)) {
    if ((await operator.answers?.find(token)) !== undefined) kept.push(token);
  }
  return { key, second, kept, store: operator.store };
}

/** Retries until the answer is no "come again". */
async function payDecided(payer: PayerProcess, key: string): Promise<PayoutAnswer> {
  for (;;) {
    const answer = await pay(payer, key);
    if (answer.code !== "in-flight") return answer;
    await sleep(25);
  }
}

async function expectReplays(payer: PayerProcess, key: string, token: string | undefined): Promise<void> {
  expect(token).toBeDefined();
  for (let count = 0; count < 3; count += 1) {
    expect(await pay(payer, key)).toMatchObject({ status: 200, isReplayed: true, token });
  }
}

const done = { status: 409, code: "already-processed", isReplayed: false };

describeEngines(["sqlite", "redis", "postgres"], (ground) => {
  test("SIGKILL behind the record, before the answer left: that answer, 1 payment", async () => {
    const { key, second, kept } = await paidUntil("recorded", ground(), {});
    await expectReplays(second, key, kept[0]);
    expect(await ground().payments(key)).toBe(1);
  });

  test("SIGKILL with an answer kept and no record, under rerun: the answer of the attempt that ends the key", async () => {
    const { key, second, kept } = await paidUntil("kept", ground(), { recovery: "rerun" });
    const [orphan] = kept;
    expect(orphan).toBeDefined();
    const { status, isReplayed, token } = await payDecided(second, key);
    expect({ status, isReplayed }).toEqual({ status: 200, isReplayed: false });
    expect(token).not.toBe(orphan);
    await expectReplays(second, key, token);
    // The effect may come twice: what `rerun` asks of a handler.
    expect(await ground().payers(key)).toEqual([orphan, token]);
  });

  test.each(["done", "released"] as const)(
    "SIGKILL with an answer kept and no record, under hold: nobody's answer until an operator has said %s",
    async (outcome) => {
      const rules = { recovery: "hold" } as const;
      const { key, second, kept, store } = await paidUntil("kept", ground(), rules);
      const [orphan] = kept;
      expect(orphan).toBeDefined();
      expect(await payDecided(second, key)).toMatchObject({ status: 503, code: "held", isReplayed: false });
      expect(await ground().payments(key)).toBe(1);
      const { fence = 0 } = (await store.read(key)) ?? {};
      expect(await store.resolve(key, outcome, { fence })).toBe("ok");
      const answer = await pay(second, key);
      if (outcome === "done") {
        expect(answer).toMatchObject(done);
        expect(await ground().payments(key)).toBe(1);
      } else {
        expect(answer).toMatchObject({ status: 200, isReplayed: false });
        expect(answer.token).not.toBe(orphan);
        await expectReplays(second, key, answer.token);
      }
    },
  );
});
