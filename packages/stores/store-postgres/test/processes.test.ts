import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect } from "@jest/globals";
import { describeOnPostgres, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { afterTest, newStores, pause } from "./connections.ts";
import { steadyTest as test } from "@countersign/test-support/runs/steadily.ts";

const key = "payout-7.acc-1.acc-2";
const claim = { token: "retry", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" } as const;
const script = (name: string) => fileURLToPath(new URL(`children/${name}`, import.meta.url));

async function setUp() {
  const stores = await newStores({ lockTimeoutMs: 200 });
  const { pool, schema } = stores;
  await pool.query(`CREATE TABLE ${schema}.payouts (token text PRIMARY KEY)`);
  const payouts = async () => (await pool.query(`SELECT FROM ${schema}.payouts`)).rowCount;
  const expiry = async () => {
    const record = await stores.idempotency.read(key);
    await pause(record?.state === "run" ? Math.max(0, record.remainingMs) + 5 : 0);
  };
  return { ...stores, payouts, expiry };
}

/** Resolves when the child has come to the point. */
async function payerAt(point: string, schema: string, leaseMs: number, idleTimeoutMs?: number) {
  const child = spawn(process.execPath, [
    script("payer.mjs"),
    postgresUrl ?? "",
    schema,
    "payer",
    String(leaseMs),
    point,
    ...(idleTimeoutMs === undefined ? [] : [String(idleTimeoutMs)]),
  ]);
  afterTest(() => child.kill("SIGKILL"));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const nextLine = async () => String((await lines.next()).value).trim();
  expect(await nextLine()).toBe(point);
  return { child, nextLine };
}

async function kill(child: ChildProcess): Promise<void> {
  const exit = once(child, "exit");
  child.kill("SIGKILL");
  await exit;
}

describeOnPostgres("a platform process that is killed", () => {
  test.each(["claimed", "before commit"])(
    "when %s: nothing is paid, the key is in flight until the lease ends, then it runs again",
    async (point) => {
      const { idempotency, schema, payouts, expiry } = await setUp();
      const { child } = await payerAt(point, schema, 1500);
      await kill(child);
      expect(await payouts()).toBe(0);
      expect(await idempotency.claim(key, claim)).toMatchObject({ status: "in-flight", fingerprint: "f" });
      await expiry();
      expect((await idempotency.claim(key, claim)).status).toBe("acquired");
    },
  );

  test("after commit: it is paid once, and the retry learns it", async () => {
    const { idempotency, schema, payouts } = await setUp();
    const { child } = await payerAt("after commit", schema, 60_000);
    await kill(child);
    expect(await payouts()).toBe(1);
    expect(await idempotency.claim(key, claim)).toEqual({ status: "done", fingerprint: "f" });
  });
});

describeOnPostgres("a platform process that is stopped beyond its lease", () => {
  test.each(["paused", "paused in the transaction"])(
    "%s: it loses the key to the next attempt and rolls its payment back",
    async (point) => {
      const { idempotency, schema, payouts, expiry } = await setUp();
      const { child, nextLine } = await payerAt(point, schema, 300);
      await expiry();
      expect((await idempotency.claim(key, claim)).status).toBe("acquired");
      child.kill("SIGCONT");
      expect(await nextLine()).toBe("lost");
      expect(await payouts()).toBe(0);
      expect(await idempotency.complete(key, "retry")).toBe("ok");
      expect((await idempotency.claim(key, { ...claim, token: "late" })).status).toBe("done");
    },
  );

  test("paused before commit: nobody gets the key, and it still pays once", async () => {
    const { idempotency, schema, payouts, expiry } = await setUp();
    const { child, nextLine } = await payerAt("paused before commit", schema, 300);
    await expiry();
    await expect(idempotency.claim(key, claim)).rejects.toThrow(/stayed locked by another transaction/);
    child.kill("SIGCONT");
    expect(await nextLine()).toBe("paid");
    expect(await payouts()).toBe(1);
    expect((await idempotency.claim(key, claim)).status).toBe("done");
  });
});

describeOnPostgres("a platform process that is cut off behind completeIn", () => {
  test("keeps its key for idleTimeoutMs: then another process gets it, and the first one hears why it has not paid", async () => {
    const { idempotency, schema, payouts, expiry } = await setUp();
    const { child, nextLine } = await payerAt("paused before commit", schema, 300, 1_500);
    await expiry();
    await expect(idempotency.claim(key, claim)).rejects.toThrow(/stayed locked by another transaction/);
    const deadline = performance.now() + 10_000;
    let status: string | undefined;
    while (status !== "acquired" && performance.now() < deadline) {
      ({ status } = await idempotency.claim(key, claim).catch(() => ({ status: undefined })));
    }
    expect(status).toBe("acquired");
    const exit = once(child, "exit");
    child.kill("SIGCONT");
    expect(await nextLine()).toMatch(/the server has ended the session and rolled the transaction back/);
    expect(await exit).toEqual([0, null]);
    expect(await payouts()).toBe(0);
    expect(await idempotency.complete(key, "retry")).toBe("ok");
  });
});
