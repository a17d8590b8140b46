import { type IdempotencyClaim, idempotencyKeys } from "@countersign/idempotency";
import type { TableStore } from "@countersign/idempotency/store";
import { beforeEach, expect, test } from "@jest/globals";
import type { Pool } from "pg";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import { testClock } from "@countersign/test-support/runs/after-test.ts";
import { connectClient, connectPool, openStores, newStores, untilBlocked } from "./connections.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";

const key = "payout-7.acc-1.acc-2";

function claim(token: string): IdempotencyClaim {
  return { token, fingerprint: "f", leaseMs: 1000, recovery: "rerun" };
}

describeOnPostgres("a step that meets a transaction which has its row", () => {
  let clock: ReturnType<typeof testClock>;
  let store: TableStore<"async">;
  let pool: Pool;
  let schema: string;
  let fence: number;

  beforeEach(async () => {
    clock = testClock();
    ({ idempotency: store, pool, schema } = await newStores({ now: clock.now, lockTimeoutMs: 150 }));
    const claimed = await store.claim(key, claim("a"));
    if (claimed.status !== "acquired") throw new Error(claimed.status);
    ({ fence } = claimed);
  });

  test.each<[string, string, (patient: TableStore<"async">) => Promise<unknown>, unknown]>([
    ["a completion", "until_at = until_at + interval '1 s'", (patient) => patient.complete(key, "a"), "ok"],
    ["a release", "until_at = until_at + interval '1 s'", (patient) => patient.release(key, "a"), "ok"],
    ["a hold", "until_at = until_at + interval '1 s'", (patient) => patient.hold(key, "a", "why"), "ok"],
    ["a completion", "token = 'b', fence = fence + 1", (patient) => patient.complete(key, "a"), "lost"],
    ["a release", "state = 'held'", (patient) => patient.release(key, "a"), "lost"],
    ["a decision", "state = 'held'", (patient) => patient.resolve(key, "done", { fence }), "ok"],
    [
      "a decision",
      "fence = fence + 1, until_at = until_at - interval '1 day'",
      (patient) => patient.resolve(key, "done", { fence }),
      "not-held",
    ],
  ])("looks again at the row behind it, as %s: after %s", async (_case, change, step, answer) => {
    const { idempotency: patient } = openStores(pool, { schema, now: clock.now, lockTimeoutMs: 20_000 });
    if (change.includes("held") || answer === "not-held") clock.advance(1000);
    const client = await connectClient(pool);
    await client.query("BEGIN");
    await client.query(`UPDATE ${schema}.countersign_idempotency SET version = version + 1, ${change}`);
    const waiting = step(patient);
    await untilBlocked(pool, schema);
    await client.query("COMMIT");
    expect(await waiting).toBe(answer);
  });

  test("leaves an expired run held, as a claim, when it was held meanwhile", async () => {
    const { idempotency: patient } = openStores(pool, { schema, now: clock.now, lockTimeoutMs: 20_000 });
    clock.advance(1000);
    const client = await connectClient(pool);
    await client.query("BEGIN");
    await client.query(
      `UPDATE ${schema}.countersign_idempotency SET version = version + 1, state = 'held', reason = 'why'`,
    );
    const waiting = patient.claim(key, claim("b"));
    await untilBlocked(pool, schema);
    await client.query("COMMIT");
    expect(await waiting).toEqual({ status: "held", fingerprint: "f", reason: "why" });
    expect(await store.read(key)).toMatchObject({ state: "held", token: "a" });
  });

  test("gets a fence above that of another takeover for which it has waited, as a claim", async () => {
    const { idempotency: patient } = openStores(pool, { schema, now: clock.now, lockTimeoutMs: 20_000 });
    clock.advance(1000);
    const client = await connectClient(pool);
    await client.query("BEGIN");
    await client.query(`SELECT FROM ${schema}.countersign_idempotency FOR UPDATE`);
    const waiting = patient.claim(key, claim("b"));
    await untilBlocked(pool, schema);
    const ahead = clock.now() * 1000 + 7;
    await client.query(
      `UPDATE ${schema}.countersign_idempotency SET version = version + 1, state = 'free', fence = $1`,
      [ahead],
    );
    await client.query("COMMIT");
    expect(await waiting).toEqual({ status: "acquired", fence: ahead + 1 });
  });

  test("fails at once as a heartbeat, which goes on after a rollback", async () => {
    const { idempotency: patient } = openStores(pool, { schema, now: clock.now, lockTimeoutMs: 20_000 });
    const client = await connectClient(pool);
    await client.query("BEGIN");
    await client.query(`SELECT FROM ${schema}.countersign_idempotency FOR UPDATE`);
    const begin = performance.now();
    await expect(patient.heartbeat(key, "a", 5000)).rejects.toThrow(/stayed locked/);
    expect(performance.now() - begin).toBeLessThan(15_000);
    await client.query("ROLLBACK");
    expect(await patient.heartbeat(key, "a", 5000)).toBe("ok");
  });

  test("is given up in time when the only connection of the pool is in a transaction", async () => {
    // Its connection comes back when the guard has answered, not before.
    const single = connectPool({ max: 1 });
    const { idempotency } = openStores(single, { schema, now: clock.now });
    const keys = idempotencyKeys({
      factory: "test",
      store: idempotency,
      storeTimeoutMs: 150,
      recovery: "rerun",
      onSettled: () => {},
    });
    const client = await single.connect();
    const acquired = Promise.resolve(keys.acquire({ key: "other", token: "t", fingerprint: "f" }));
    await expect(acquired).rejects.toMatchObject({ status: 503, code: "idempotency-store-unavailable" });
    client.release();
    await eventually(async () => (await idempotency.read("other")) === undefined);
  });
});
