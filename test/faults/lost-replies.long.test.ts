// Rows 4 to 6: the store has done it, or has not, and its answer is lost.
import { expect } from "@jest/globals";
import { steadyTest as test } from "../support/runs/steadily.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { behindProxy, describeEngines, newKey } from "./engines.ts";
import { type PayerConfig, usualTimes } from "./payer-app.mjs";
import { pay, payTo, spawnPayer, startPayer } from "./payers.ts";
import { StoreFaults } from "./store-faults.ts";
import { payUntilDecided } from "./timing.ts";

const { storeTimeoutMs } = usualTimes;
// Where no call hangs: a server on a busy machine may take longer than usual.
const patient = { storeTimeoutMs: 20_000, leaseMs: 60_000 };

async function payerWithFaults(config: PayerConfig) {
  const faults = new StoreFaults();
  const payer = await startPayer(config, { wrapStore: faults.wrap });
  return { faults, payer };
}

const statuses = (answers: readonly { readonly status: number }[]) => answers.map(({ status }) => status);

describeEngines(["memory", "sqlite", "redis", "postgres"], (ground) => {
  test.each(["hangs after", "throws after"] as const)(
    "row 4, claim timed out, store had executed it (%s): 503, then 2xx",
    async (fault) => {
      const key = newKey();
      const longLease = { leaseMs: 30_000 };
      const { faults, payer } = await payerWithFaults({ engine: ground().engine, times: longLease });
      faults.fail("claim", fault);
      expect(await pay(payer, key)).toMatchObject({ status: 503, retryAfter: "1" });
      // Long before the lease would have ended: the guard has given the key back.
      expect(statuses(await payUntilDecided(payer, key)).at(-1)).toBe(200);
      expect(await ground().payments(key)).toBe(1);
    },
  );

  test("row 4, claim sent again after a lost reply: its own token is never seen as foreign", async () => {
    const key = newKey();
    const { faults, payer } = await payerWithFaults({ engine: ground().engine, times: patient });
    faults.fail("claim", "twice");
    expect(await pay(payer, key)).toMatchObject({ status: 200 });
    expect(await pay(payer, key)).toMatchObject({ status: 409 });
    expect(await ground().payments(key)).toBe(1);
  });

  test.each(["hangs after", "throws after"] as const)(
    "row 5, complete timed out, store had executed it (%s): 2xx; retry 409",
    async (fault) => {
      const key = newKey();
      const { faults, payer } = await payerWithFaults({ engine: ground().engine });
      faults.fail("complete", fault);
      expect(await pay(payer, key)).toMatchObject({ status: 200 });
      expect(await pay(payer, key)).toMatchObject({ status: 409, code: "already-processed" });
      expect(await ground().payments(key)).toBe(1);
    },
  );

  test.each(["hangs before", "throws before"] as const)(
    "row 6, complete timed out, not executed (%s): background retry, never a second run",
    async (fault) => {
      const key = newKey();
      const { faults, payer } = await payerWithFaults({ engine: ground().engine });
      faults.fail("complete", fault, fault, fault);
      expect(await pay(payer, key)).toMatchObject({ status: 503 });
      expect(await ground().payments(key)).toBe(1);
      const retries = statuses(await payUntilDecided(payer, key));
      expect(retries.at(-1)).toBe(409);
      expect(faults.calls.complete).toBe(4);
      expect(await ground().payments(key)).toBe(1);
    },
  );
});

describeEngines(["redis", "postgres"], (ground) => {
  test("row 5, the line loses the answer to complete: 2xx or 503, as it is in doubt; retry 409; 1 pay", async () => {
    const key = newKey();
    const { engine, proxy } = await behindProxy(ground());
    const point = "after commit";
    const payer = await spawnPayer({ engine }, { armed: [point] });
    const { answer } = await payTo(point, payer, key);
    proxy.dropReplies(true);
    payer.go(point);
    await sleep(2 * storeTimeoutMs);
    proxy.restore();
    expect((await answer).status).not.toBe(409);
    expect(statuses(await payUntilDecided(payer, key)).at(-1)).toBe(409);
    expect(await ground().payments(key)).toBe(1);
  });
});
