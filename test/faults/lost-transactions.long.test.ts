// Rows 25 to 29, 35 and 36: lines, processes and handlers that fail around COMMIT.
import { mysqlEngine } from "../support/servers/engines.ts";
import { expect } from "@jest/globals";
import { eventually } from "../support/runs/eventually.ts";
import { steadyTest as test } from "../support/runs/steadily.ts";
import { servicePublicPem as publicKey } from "../support/signers/test-keys.ts";
import { behindProxy, describeEngines, type Ground, newKey, storeKey } from "./engines.ts";
import type { TransactionPoint } from "./payer-app.mjs";
import { pay, payTo, spawnPayer, startPayer } from "./payers.ts";
import { payUntilDecided } from "./timing.ts";

// Longer by far than the lock waits: MariaDB counts whole seconds, and MySQL looks once a second whether one is over.
const storeTimeoutMs = 4_000;

/** A payer behind a line of its own, stopped at the point by a payout, and another one on a line that works. */
async function stoppedAt(point: TransactionPoint, ground: Ground, times = {}) {
  const key = newKey();
  const { engine, proxy } = await behindProxy(ground);
  const config = { publicKey, recovery: "hold", times: { storeTimeoutMs, ...times } } as const;
  const [first, second] = await Promise.all([
    spawnPayer({ ...config, engine }),
    startPayer({ ...config, engine: ground.engine }),
  ]);
  // Its connections and what it asks once are there before anything fails.
  await payUntilDecided(first, newKey());
  first.arm(point);
  const { answer } = await payTo(point, first, key);
  return { key, proxy, first, second, answer };
}

describeEngines(["postgres", "mysql"], (ground) => {
  test("row 25, COMMIT's answer is lost: 503, then 409; 1 pay", async () => {
    const { key, proxy, first, answer } = await stoppedAt("savepoint released", ground());
    proxy.dropReplies(true);
    first.go("savepoint released");
    await eventually(() => proxy.lost() > 0);
    proxy.restore();
    expect(await answer).toMatchObject({ status: 503, code: "commit-unknown", retryAfter: "1" });
    expect((await payUntilDecided(first, key)).at(-1)).toMatchObject({ status: 409 });
    expect(await ground().payments(key)).toBe(1);
  });

  test("row 26, the line is cut before COMMIT is there: 503, then the retry pays", async () => {
    const { key, proxy, first, second, answer } = await stoppedAt("savepoint released", ground());
    proxy.delay(60_000);
    first.go("savepoint released");
    // The key is not free before its transaction ends.
    expect(await pay(second, key)).toMatchObject({ status: 503, code: "in-flight" });
    proxy.cut();
    expect(await answer).toMatchObject({ status: 503, code: "commit-unknown", retryAfter: "1" });
    proxy.restore();
    expect((await payUntilDecided(first, key)).at(-1)).toMatchObject({ status: 200 });
    expect(await ground().payments(key)).toBe(1);
  });

  test("row 27, SIGKILL while COMMIT is under way: 503 until it is there, then 409", async () => {
    const { key, proxy, first, second, answer } = await stoppedAt("savepoint released", ground());
    const ended = expect(answer).rejects.toMatchObject({ code: "ECONNRESET" });
    proxy.delay(2_500);
    const before = proxy.waiting();
    first.go("savepoint released");
    await eventually(() => proxy.waiting() > before);
    await first.kill();
    await ended;
    expect(await pay(second, key)).toMatchObject({ status: 503, code: "in-flight" });
    expect((await payUntilDecided(second, key)).at(-1)).toMatchObject({ status: 409 });
    expect(await ground().payments(key)).toBe(1);
  });

  test("row 28, the first step's answer is lost: 503; the retry pays when its line is gone", async () => {
    const { key, proxy, first, second, answer } = await stoppedAt("before BEGIN", ground());
    proxy.dropReplies(true);
    first.go("before BEGIN");
    expect(await answer).toMatchObject({ status: 503, code: "transaction-unavailable", retryAfter: "1" });
    // On MySQL the first message begins the transaction, and claims nothing yet.
    const isClaimed = ground().kind !== "mysql" || mysqlEngine === "mariadb";
    const other = isClaimed ? { status: 503, code: "in-flight" } : { status: 200 };
    expect(await pay(second, key)).toMatchObject(other);
    proxy.restore();
    if (isClaimed) expect((await payUntilDecided(second, key)).at(-1)).toMatchObject({ status: 200 });
    expect(await pay(first, key)).toMatchObject({ status: 409 });
    expect(await ground().payments(key)).toBe(1);
  });

  test.each<[TransactionPoint, string]>([
    ["begun", "transaction-unavailable"],
    ["in pay", "transaction-unavailable"],
    ["savepoint released", "commit-unknown"],
  ])(
    "row 29, SIGSTOP %s beyond idleTimeoutMs, another one pays, SIGCONT: 503, 1 pay",
    async (point, code) => {
      const key = newKey();
      const config = { engine: ground().engine, publicKey, times: { idleTimeoutMs: 400, storeTimeoutMs } };
      const first = await spawnPayer(config, { armed: [point] });
      const { answer } = await payTo(point, first, key);
      first.signal("SIGSTOP");
      const second = await startPayer(config);
      const answers = await payUntilDecided(second, key);
      expect(answers.slice(0, -1).every((refused) => refused.code === "in-flight")).toBe(true);
      expect(answers.at(-1)).toMatchObject({ status: 200 });
      first.signal("SIGCONT");
      first.go(point);
      expect(await answer).toMatchObject({ status: 503, code, retryAfter: "1" });
      expect(await ground().payments(key)).toBe(1);
      expect((await payUntilDecided(first, key)).at(-1)).toMatchObject({ status: 409 });
      expect(await second.store.read(storeKey(key))).toMatchObject({ state: "done" });
    },
  );
});

describeEngines(["postgres", "mysql"], (ground) => {
  const transactionTimeoutMs = 3_000;

  test("row 35, pay never ends: 503, then the retry pays; the first pays nothing when it goes on", async () => {
    const key = newKey();
    const times = { storeTimeoutMs, transactionTimeoutMs, idleTimeoutMs: 5_000 };
    const payer = await startPayer({ engine: ground().engine, publicKey, times });
    await payUntilDecided(payer, newKey());
    payer.arm("in pay");
    const { answer } = await payTo("in pay", payer, key);
    expect(await answer).toMatchObject({ status: 503, code: "transaction-timed-out", retryAfter: "1" });
    const answers = await payUntilDecided(payer, key);
    expect(answers.slice(0, -1).every(({ code }) => code === "in-flight")).toBe(true);
    expect(answers.at(-1)).toMatchObject({ status: 200 });
    payer.go("in pay");
    expect((await payUntilDecided(payer, key)).at(-1)).toMatchObject({ status: 409 });
    expect(await ground().payments(key)).toBe(1);
  });

  test("row 36, COMMIT is never answered, and the line stays: 503, then 409", async () => {
    const { key, proxy, first, second, answer } = await stoppedAt("savepoint released", ground(), {
      transactionTimeoutMs,
    });
    proxy.dropReplies(true);
    first.go("savepoint released");
    expect(await answer).toMatchObject({ status: 503, code: "commit-unknown", retryAfter: "1" });
    expect((await payUntilDecided(second, key)).at(-1)).toMatchObject({ status: 409 });
    expect(await ground().payments(key)).toBe(1);
    proxy.restore();
    // Its lane is free.
    expect((await payUntilDecided(first, key)).at(-1)).toMatchObject({ status: 409 });
  });
});

describeEngines(["sqlite"], (ground) => {
  test("row 29, SIGSTOP in pay: nobody pays until its process ends, and then the retry", async () => {
    const key = newKey();
    const config = { engine: ground().engine, publicKey };
    const second = await startPayer(config);
    const first = await spawnPayer(config, { armed: ["in pay"] });
    const { answer } = await payTo("in pay", first, key);
    const ended = expect(answer).rejects.toMatchObject({ code: "ECONNRESET" });
    first.signal("SIGSTOP");
    expect(await pay(second, key)).toMatchObject({ status: 503 });
    await first.kill();
    await ended;
    expect((await payUntilDecided(second, key)).at(-1)).toMatchObject({ status: 200 });
    expect(await ground().payments(key)).toBe(1);
  });
});
