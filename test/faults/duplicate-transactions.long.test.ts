// Rows 30 to 32: many at once, in several processes whose handlers get the transaction.
import { expect } from "@jest/globals";
import { setTimeout as sleep } from "node:timers/promises";
import { send } from "../support/servers/http-client.ts";
import { steadyTest as test } from "../support/runs/steadily.ts";
import { servicePublicPem as publicKey } from "../support/signers/test-keys.ts";
import { describeEngines, newKey } from "./engines.ts";
import { pay, payTo, type PayoutAnswer, signedRequest, spawnPayer } from "./payers.ts";
import { payUntilDecided } from "./timing.ts";

const count = (answers: readonly PayoutAnswer[], status: number) =>
  answers.filter((answer) => answer.status === status).length;

const times = { waitMs: 5_000, storeTimeoutMs: 5_000 };

describeEngines(["sqlite", "postgres", "mysql"], (ground) => {
  test("row 30, 3 processes x 100 concurrent identical payouts: 1 pay, one 200, no 409 before the commit", async () => {
    const key = newKey();
    const config = { engine: ground().engine, publicKey, times };
    const payers = await Promise.all([1, 2, 3].map(() => spawnPayer(config)));
    await Promise.all(payers.map((payer) => payUntilDecided(payer, newKey())));
    const requests = payers.flatMap((payer) =>
      Array.from({ length: 100 }, async () => {
        const answer = await pay(payer, key);
        const isEarly = answer.status === 409 && (await ground().payments(key)) !== 1;
        return { ...answer, isEarly };
      }),
    );
    const answers = await Promise.all(requests);
    expect(count(answers, 200)).toBe(1);
    expect(count(answers, 409) + count(answers, 503)).toBe(299);
    expect(count(answers, 409)).toBeGreaterThan(0);
    expect(answers.some(({ isEarly }) => isEarly)).toBe(false);
    expect(await ground().payments(key)).toBe(1);
  });

  test("row 30, the same bytes to each of 3 processes: one is paid, the others 401", async () => {
    const config = { engine: ground().engine, publicKey, times };
    const payers = await Promise.all([1, 2, 3].map(() => spawnPayer(config)));
    const key = newKey();
    const request = signedRequest(key);
    const answers = await Promise.all(payers.map(({ port }) => send(port, request)));
    const of = (status: number) => answers.filter((answer) => answer.status === status).length;
    expect({ paid: of(200), refused: of(401) }).toEqual({ paid: 1, refused: 2 });
    expect(await ground().payments(key)).toBe(1);
  });

  test("row 32, same key, other amount, behind a refused one and behind a paid one: 1 pay", async () => {
    const key = newKey();
    const payer = await spawnPayer({ engine: ground().engine, publicKey, times });
    expect(await pay(payer, key, { amount: 200, fault: "refuse" })).toMatchObject({ status: 422 });
    expect(await pay(payer, key)).toMatchObject({ status: 200 });
    expect(await pay(payer, key, { amount: 200 })).toMatchObject({
      status: 409,
      code: "idempotency-key-reused",
    });
    expect(await ground().payments(key)).toBe(1);
  });
});

// A synchronous handler lets nobody in before it ends.
describeEngines(["postgres", "mysql"], (ground) => {
  test("row 31, the first attempt fails while others wait in two processes: one of these pays", async () => {
    const key = newKey();
    const config = { engine: ground().engine, publicKey, times };
    const [owner, other] = await Promise.all([spawnPayer(config, { armed: ["begun"] }), spawnPayer(config)]);
    const { answer: first } = await payTo("begun", owner, key, { fault: "fail" });
    const waiters = [owner, other, owner, other].map((payer) => pay(payer, key));
    await sleep(300);
    owner.go("begun");
    expect(await first).toMatchObject({ status: 500 });
    const answers = await Promise.all(waiters);
    expect([count(answers, 200), count(answers, 409)]).toEqual([1, 3]);
    expect(await ground().payments(key)).toBe(1);
  });
});
