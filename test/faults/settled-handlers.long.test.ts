// Rows 38 to 41: handlers that leave a statement on its way, that end their transaction by themselves, that write nothing, that die.
import { expect } from "@jest/globals";
import { eventually } from "../support/runs/eventually.ts";
import { steadyTest as test } from "../support/runs/steadily.ts";
import { servicePublicPem as publicKey } from "../support/signers/test-keys.ts";
import { describeEngines, type Ground, newKey, storeKey } from "./engines.ts";
import { killedAt, pay, startPayer } from "./payers.ts";
import { payUntilDecided } from "./timing.ts";

const configOf = ({ engine }: Ground) => ({ engine, publicKey, recovery: "hold" }) as const;

describeEngines(["sqlite", "postgres", "mysql"], (ground) => {
  test("row 38, pay fails beside a statement on its way: neither it nor a later one commits; the retry pays", async () => {
    const key = newKey();
    const payer = await startPayer(configOf(ground()));
    for (let times = 0; times < 5; times += 1) {
      // oxlint-disable-next-line no-await-in-loop -- retries come one after the other
      expect(await pay(payer, key, { fault: "leave a statement" })).toMatchObject({ status: 500 });
    }
    expect(await ground().payments(key)).toBe(0);
    expect(await pay(payer, key)).toMatchObject({ status: 200 });
    expect(await pay(payer, key)).toMatchObject({ status: 409, code: "already-processed" });
    expect(await ground().payments(key)).toBe(1);
  });

  test("row 40, pay writes nothing: 503 and held, for every retry; 0 pay", async () => {
    const key = newKey();
    const payer = await startPayer(configOf(ground()));
    expect(await pay(payer, key, { fault: "write nothing" })).toMatchObject({
      status: 503,
      code: "nothing-written",
    });
    expect(await pay(payer, key)).toMatchObject({ status: 503, code: "held" });
    expect(await payer.store.read(storeKey(key))).toMatchObject({ state: "held" });
    expect(await ground().payments(key)).toBe(0);
  });

  test("row 40, SIGKILL before its key is held: the retry runs pay", async () => {
    const key = newKey();
    const { second } = await killedAt("begun", configOf(ground()), key);
    expect((await payUntilDecided(second, key)).at(-1)).toMatchObject({ status: 200 });
    expect(await ground().payments(key)).toBe(1);
  });
});

describeEngines(["sqlite", "postgres", "mysql"], (ground) => {
  test("row 41, SIGKILL when something of pay has committed early: 503, and held once its lease has ended; 0 pay", async () => {
    const key = newKey();
    const times = { transactionTimeoutMs: 2_000 };
    const config = { engine: ground().engine, publicKey, recovery: "rerun", times } as const;
    const { second } = await killedAt("in pay", config, key, { fault: "commit early" });
    expect(await pay(second, key)).toMatchObject({ status: 503, code: "in-flight" });
    const { store } = await startPayer(config);
    expect(await store.read(storeKey(key))).toMatchObject({ state: "running" });
    await eventually(async () => (await pay(second, key)).code === "held");
    expect(await store.read(storeKey(key))).toMatchObject({ state: "held", reason: "lease-expired" });
    expect(await ground().payments(key)).toBe(0);
  });
});

describeEngines(["postgres", "mysql"], (ground) => {
  test("row 39, pay ends its transaction by COMMIT and fails: 500 and held, 503 for every retry; 1 pay", async () => {
    const key = newKey();
    const payer = await startPayer(configOf(ground()));
    expect(await pay(payer, key, { fault: "commit, then fail" })).toMatchObject({ status: 500 });
    expect(await pay(payer, key)).toMatchObject({ status: 503, code: "held" });
    expect(await payer.store.read(storeKey(key))).toMatchObject({ state: "held" });
    expect(await ground().payments(key)).toBe(1);
  });
});
