// The code of the page about stores of one's own, run.
import { randomUUID } from "node:crypto";
import type { IdempotencyClaim } from "@countersign/idempotency";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { describeOnPostgres, isolatedName, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Pool } from "pg";
import { MyStore, createTable } from "../dist/reference/my-store.js";
import { testMyTransactions } from "../dist/reference/my-transactions.js";

const claimOf = (rest: Partial<IdempotencyClaim> = {}): IdempotencyClaim => ({
  token: randomUUID(),
  fingerprint: "of it",
  leaseMs: 60_000,
  recovery: "rerun",
  ...rest,
});

// What the shown stores leave out is no case here.
testMyTransactions({ describe, test: Object.assign(test.bind(undefined), { skip: () => {} }) });

describeOnPostgres("MyStore on PostgreSQL", () => {
  const schema = isolatedName("mine");
  const pool = new Pool({
    connectionString: postgresUrl,
    options: `-c search_path=${schema}`,
    application_name: schema,
  });
  const store = new MyStore(pool);

  /** As if the lease had ended. */
  const expire = (key: string) =>
    pool.query("UPDATE my_keys SET until_at = now(), version = version + 1 WHERE name = $1", [key]);

  beforeAll(async () => {
    await pool.query(`CREATE SCHEMA ${schema}`);
    await pool.query(createTable);
  });

  afterAll(async () => {
    await pool.query(`DROP SCHEMA ${schema} CASCADE`);
    await pool.end();
  });

  test("of claims at once one has a new key, and one an expired run", async () => {
    const claims = () => Promise.all(Array.from({ length: 20 }, () => store.claim("race", claimOf())));
    const winners = async () => (await claims()).filter(({ status }) => status === "acquired");
    const [first] = await winners();
    await expire("race");
    const [second, ...others] = await winners();
    expect([first, second, others]).toMatchObject([{ status: "acquired" }, { status: "acquired" }, []]);
    const fenceOf = (winner: typeof first) => (winner?.status === "acquired" ? winner.fence : 0);
    expect(fenceOf(second)).toBeGreaterThan(fenceOf(first));
  });

  test("a claim that waited for another step's commit is decided again", async () => {
    await store.claim("paid", claimOf());
    await expire("paid");
    const client = await pool.connect();
    await client.query("BEGIN");
    await client.query(
      "UPDATE my_keys SET state = 'held', reason = 'asked', version = version + 1 WHERE name = 'paid'",
    );
    // Asked outside of the transaction: in one, what was read first is read again until its end.
    const blocked = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = $1";
    const waiting = store.claim("paid", claimOf());
    await eventually(async () => (await pool.query(blocked, [schema])).rowCount === 1);
    await client.query("COMMIT");
    client.release();
    expect(await waiting).toMatchObject({ status: "held", reason: "asked" });
  });

  test("a claim sent again keeps its fence, and an expired run is held where nobody may run it", async () => {
    const claim = claimOf({ recovery: "hold" });
    const first = await store.claim("again", claim);
    await expire("again");
    expect(await store.claim("again", claim)).toEqual(first);
    expect(await store.claim("again", claimOf())).toMatchObject({ status: "in-flight" });
    await expire("again");
    const held = { status: "held", fingerprint: claim.fingerprint, reason: "lease-expired" };
    expect(await store.claim("again", claimOf({ recovery: "hold" }))).toEqual(held);
    expect(await store.heartbeat("again", claim.token, 1_000)).toBe("lost");
  });

  test("only the owner begins its lease anew, and odd keys are kept apart", async () => {
    const keys = [
      "k",
      "K",
      "k ",
      "k\0",
      "k\ud800",
      "k\ud801",
      "k\\u0000",
      "\0".repeat(512),
      "\0".repeat(511),
    ];
    for (const key of keys) {
      const claim = claimOf();
      // oxlint-disable-next-line no-await-in-loop -- a key that is another one's would be in flight
      expect(await store.claim(key, claim)).toMatchObject({ status: "acquired" });
      // oxlint-disable-next-line no-await-in-loop -- as above
      expect(await store.heartbeat(key, claim.token, 1_000)).toBe("ok");
      // oxlint-disable-next-line no-await-in-loop -- as above
      expect(await store.heartbeat(key, randomUUID(), 1_000)).toBe("lost");
    }
  });
});
