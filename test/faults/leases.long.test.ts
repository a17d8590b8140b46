// Rows 7 and 8: handlers beyond their lease, processes that stand still.
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "@jest/globals";
import { steadyTest as test } from "../support/runs/steadily.ts";
import { describeEngines, newKey } from "./engines.ts";
import type { PayerConfig, Point } from "./payer-app.mjs";
import { pay, payTo, spawnPayer } from "./payers.ts";
import { expectOnePaymentAfterLease, expectRefusedFor, leaseMs } from "./timing.ts";

describeEngines(["memory", "sqlite", "redis", "postgres"], (ground, kind) => {
  test("row 7, slow handler beyond the lease, heartbeat alive: 1 pay; duplicates 503 or 409", async () => {
    const key = newKey();
    const config = { engine: ground().engine };
    const owner = await spawnPayer(config, { armed: ["handler"] });
    // What memory knows is known in one process only.
    const others = kind === "memory" ? [owner] : [owner, await spawnPayer(config)];
    const { answer } = await payTo("handler", owner, key);
    await expectRefusedFor(others, key, leaseMs * 2.5);
    expect(await ground().payments(key)).toBe(0);
    owner.go("handler");
    expect(await answer).toMatchObject({ status: 200 });
    for (const payer of others) expect(await pay(payer, key)).toMatchObject({ status: 409 });
    expect(await ground().payments(key)).toBe(1);
  });
});

/** Stops the first process at the point for twice the lease; meanwhile the second one gets the retries. */
async function stopForTwiceTheLease(config: PayerConfig, point: Point, key: string) {
  const [first, second] = await Promise.all([spawnPayer(config, { armed: [point] }), spawnPayer(config)]);
  const { answer } = await payTo(point, first, key);
  first.signal("SIGSTOP");
  const stoppedAt = performance.now();
  return {
    first,
    second,
    stoppedAt,
    async resume() {
      await sleep(2 * leaseMs - (performance.now() - stoppedAt));
      first.go(point);
      first.signal("SIGCONT");
      return answer;
    },
  };
}

describeEngines(["sqlite", "redis", "postgres"], (ground) => {
  test("row 8, SIGSTOP for twice the lease, a second process takes over, the first resumes: the rail knows the fence of the second; 1 pay", async () => {
    const key = newKey();
    const config = { engine: ground().engine };
    const { first, second, stoppedAt, resume } = await stopForTwiceTheLease(config, "handler", key);
    await expectOnePaymentAfterLease(second, key, stoppedAt);
    expect(await ground().payments(key)).toBe(1);
    expect(await resume()).toMatchObject({ status: 500 });
    expect(await ground().payments(key)).toBe(1);
    for (const payer of [first, second]) expect(await pay(payer, key)).toMatchObject({ status: 409 });
  });

  test("row 8, SIGSTOP for twice the lease with recovery hold: nobody takes over, the first resumes; 1 pay", async () => {
    const key = newKey();
    const config = { engine: ground().engine, recovery: "hold" } as const;
    const { first, second, resume } = await stopForTwiceTheLease(config, "handler", key);
    let refused = await pay(second, key);
    for (; refused.code !== "held"; refused = await pay(second, key)) expect(refused.status).toBe(503);
    expect(await resume()).toMatchObject({ status: 200 });
    for (const payer of [first, second]) expect(await pay(payer, key)).toMatchObject({ status: 409 });
    expect(await ground().payments(key)).toBe(1);
  });
});
