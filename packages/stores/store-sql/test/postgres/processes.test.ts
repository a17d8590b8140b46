import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect } from "@jest/globals";
import { describeOnPostgres, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { newStores } from "./connections.ts";
import { steadyTest as test } from "@countersign/test-support/runs/steadily.ts";

const key = "payout-7.acc-1.acc-2";
const claim = { token: "retry", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" } as const;
const script = (name: string) => fileURLToPath(new URL(`children/${name}`, import.meta.url));

async function setUp() {
  const stores = await newStores({ lockTimeoutMs: 200 });
  const { pool, schema } = stores;
  await pool.query(`CREATE TABLE ${schema}.payouts (token text PRIMARY KEY)`);
  const payouts = async () => (await pool.query(`SELECT FROM ${schema}.payouts`)).rowCount;
  return { ...stores, payouts };
}

async function pausedPayer(schema: string, idleTimeoutMs?: number) {
  const child = spawn(process.execPath, [
    script("payer.mjs"),
    postgresUrl ?? "",
    schema,
    "payer",
    ...(idleTimeoutMs === undefined ? [] : [String(idleTimeoutMs)]),
  ]);
  afterTest(() => child.kill("SIGKILL"));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const nextLine = async () => String((await lines.next()).value).trim();
  expect(await nextLine()).toBe("paused before commit");
  return { child, nextLine };
}

describeOnPostgres("a platform process that is stopped in its transaction", () => {
  test("paused before commit: nobody gets the key, and it still pays once", async () => {
    const { idempotency, schema, payouts } = await setUp();
    const { child, nextLine } = await pausedPayer(schema);
    await expect(idempotency.claim(key, claim)).rejects.toThrow(/stayed locked by another transaction/);
    child.kill("SIGCONT");
    expect(await nextLine()).toBe("paid");
    expect(await payouts()).toBe(1);
    expect((await idempotency.claim(key, claim)).status).toBe("done");
  });
});

describeOnPostgres("a platform process that is cut off in its transaction", () => {
  test("keeps its key for idleTimeoutMs: then another process gets it, and the first one hears why it has not paid", async () => {
    const { idempotency, schema, payouts } = await setUp();
    const { child, nextLine } = await pausedPayer(schema, 1_500);
    await expect(idempotency.claim(key, claim)).rejects.toThrow(/stayed locked by another transaction/);
    const deadline = performance.now() + 10_000;
    let status: string | undefined;
    while (status !== "acquired" && performance.now() < deadline) {
      ({ status } = await idempotency.claim(key, claim).catch(() => ({ status: undefined })));
    }
    expect(status).toBe("acquired");
    const exit = once(child, "exit");
    child.kill("SIGCONT");
    expect(await nextLine()).toMatch(/idle-in-transaction timeout/);
    expect(await exit).toEqual([0, null]);
    expect(await payouts()).toBe(0);
    expect(await idempotency.complete(key, "retry")).toBe("ok");
  });
});
