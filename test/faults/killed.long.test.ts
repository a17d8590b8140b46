// Rows 1 to 3: a process dies by SIGKILL, another one gets the retries.
import { expect } from "@jest/globals";
import { steadyTest as test } from "../support/runs/steadily.ts";
import { describeEngines, newKey } from "./engines.ts";
import { killedAt, pay, startPayer } from "./payers.ts";
import { expectOnePaymentAfterLease, payUntilDecided } from "./timing.ts";

describeEngines(["sqlite", "redis", "postgres"], (ground) => {
  test("row 1, SIGKILL between claim and handler: 0 pay, 503 until the lease ends, then one 2xx", async () => {
    const key = newKey();
    const { second, since } = await killedAt("handler", { engine: ground().engine }, key);
    expect(await ground().payments(key)).toBe(0);
    await expectOnePaymentAfterLease(second, key, since);
    expect(await ground().payments(key)).toBe(1);
  });

  test("row 2, SIGKILL in the handler before the bank commits: rollback; rerun gives 1 pay", async () => {
    const key = newKey();
    const { second, since } = await killedAt("before commit", { engine: ground().engine }, key);
    expect(await ground().payments(key)).toBe(0);
    await expectOnePaymentAfterLease(second, key, since);
    expect(await ground().payments(key)).toBe(1);
  });

  test("row 3, SIGKILL after the record, before the answer: retry gets 409; 1 pay", async () => {
    const key = newKey();
    const { second } = await killedAt("recorded", { engine: ground().engine }, key);
    expect(await pay(second, key)).toMatchObject({ status: 409, code: "already-processed" });
    expect(await ground().payments(key)).toBe(1);
  });

  test("row 3, SIGKILL between the payment and its record: held for an operator, never a second run", async () => {
    const key = newKey();
    const config = { engine: ground().engine, recovery: "hold" } as const;
    const { second } = await killedAt("after commit", config, key);
    let refused = await pay(second, key);
    for (; refused.code !== "held"; refused = await pay(second, key)) expect(refused.code).toBe("in-flight");
    expect(await ground().payments(key)).toBe(1);
    const operator = await startPayer(config);
    const record = await operator.store.read(key);
    if (record === undefined) throw new Error("the key must be held");
    expect(await operator.store.resolve(key, "done", { fence: record.fence })).toBe("ok");
    expect(await payUntilDecided(second, key)).toMatchObject([{ status: 409 }]);
    expect(await ground().payments(key)).toBe(1);
  });
});
