// Rows 22 and 37: a key is ended once, whoever decides or answers in between.
import { expect } from "@jest/globals";
import { steadyTest as test } from "../support/runs/steadily.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { describeEngines, newKey } from "./engines.ts";
import type { PayerConfig } from "./payer-app.mjs";
import { pay, payTo, spawnPayer, startPayer } from "./payers.ts";
import { leaseMs, payUntilDecided } from "./timing.ts";

describeEngines(["memory", "sqlite", "redis", "postgres"], (ground) => {
  test("row 22, an app's time-out answers while the handler works, recovery rerun: the rail refuses the first; 1 pay", async () => {
    const key = newKey();
    const config = { engine: ground().engine, answerAfterMs: 400 };
    const payer = await startPayer(config, { armed: ["handler"] });
    expect(await pay(payer, key)).toMatchObject({ status: 503, code: undefined });
    expect((await payUntilDecided(payer, key)).at(-1)?.status).toBe(200);
    payer.go("handler");
    await sleep(100);
    expect(await pay(payer, key)).toMatchObject({ status: 409 });
    expect(await ground().payments(key)).toBe(1);
  });

  test("row 22, an app's time-out answers while the handler works, recovery hold: never a second run", async () => {
    const key = newKey();
    const config: PayerConfig = { engine: ground().engine, recovery: "hold", answerAfterMs: 400 };
    const payer = await startPayer(config, { armed: ["handler"] });
    expect(await pay(payer, key)).toMatchObject({ status: 503, code: undefined });
    for (let retry = 0; retry < 3; retry += 1) {
      expect(await pay(payer, key)).toMatchObject({ status: 503, code: "held" });
    }
    payer.go("handler");
    await sleep(200);
    expect(await pay(payer, key)).toMatchObject({ status: 503, code: "held" });
    // Nothing stops the first one; and there is no second.
    expect(await ground().payments(key)).toBe(1);
  });
});

describeEngines(["sqlite", "redis", "postgres"], (ground) => {
  test("row 37, SIGSTOP, an operator releases, SIGCONT: the sleeper has paid, and holds its key again; 1 pay", async () => {
    const key = newKey();
    const config: PayerConfig = { engine: ground().engine, recovery: "hold" };
    const [sleeper, operator] = [await spawnPayer(config, { armed: ["handler"] }), await startPayer(config)];
    const { answer } = await payTo("handler", sleeper, key);
    sleeper.signal("SIGSTOP");
    await sleep(leaseMs * 1.2);
    // From here on nothing on record says that its process may live.
    expect(await pay(operator, key)).toMatchObject({ status: 503, code: "held" });
    const shown = await operator.store.read(key);
    if (shown === undefined) throw new Error("the key must be there");
    // Of another attempt: nothing happens.
    expect(await operator.store.resolve(key, "released", { fence: shown.fence - 1 })).toBe("not-held");
    expect(await operator.store.resolve(key, "released", { fence: shown.fence })).toBe("ok");
    sleeper.go("handler");
    sleeper.signal("SIGCONT");
    expect((await answer).status).toBe(503);
    for (const payer of [operator, sleeper, operator])
      expect(await pay(payer, key)).toMatchObject({ status: 503, code: "held" });
    expect(await ground().payments(key)).toBe(1);
    expect(await operator.store.read(key)).toMatchObject({
      state: "held",
      reason: "lease-expired",
      decision: { outcome: "released", reopened: { by: "countersign" } },
    });
  });
});
