import { beforeAll, afterAll, describe, expect, test } from "@jest/globals";
import { createStores, migrate } from "@countersign/store-sql";
import { Pool, escapeLiteral } from "pg";
import { isolatedName, postgresUrl } from "@countersign/test-support/servers/engines.ts";

const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" } as const;
const onPostgres = postgresUrl === undefined ? describe.skip : describe;

onPostgres("the plans on 10,000 rows", () => {
  const schema = isolatedName("pg");
  const pool = new Pool({ connectionString: postgresUrl, max: 1 });
  const plans: string[] = [];

  /** A pool that has every statement of the stores explained, too. */
  const explaining = {
    async query(text: string, values?: unknown[]) {
      if (/^(WITH|INSERT|DELETE|SELECT kept)|AS is_alone/.test(text)) {
        const { rows } = await pool.query<Record<string, string>>(
          `EXPLAIN (COSTS OFF) ${inline(text, values)}`,
        );
        plans.push(rows.map((row) => row["QUERY PLAN"]).join("\n"));
      }
      return pool.query(text, values);
    },
  };
  const { idempotency, nonces, close } = createStores({
    pool: explaining,
    schema,
    pruneIntervalMs: 0,
  });

  beforeAll(async () => {
    await migrate(pool, { schema });
    await pool.query(
      `INSERT INTO ${schema}.countersign_idempotency
       SELECT 'payout-' || n, CASE WHEN n % 1000 = 0 THEN 'held' WHEN n % 500 = 1 THEN 'running' ELSE 'done' END, 'a', n, 'f', '', 'hold',
         now() + interval '1 hour' - CASE WHEN n % 100 = 2 THEN interval '2 hours' ELSE interval '0' END, 1
       FROM generate_series(1, 10000) AS n`,
    );
    await pool.query(
      `INSERT INTO ${schema}.countersign_nonces
       SELECT sha256(n::text::bytea), 'a', now() + interval '1 hour' - CASE WHEN n % 100 = 2 THEN interval '2 hours' ELSE interval '0' END
       FROM generate_series(1, 10000) AS n`,
    );
    await pool.query(`ANALYZE ${schema}.countersign_idempotency, ${schema}.countersign_nonces`);
  });

  afterAll(async () => {
    close();
    await pool.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    await pool.end();
  });

  test.each<[string, string, () => Promise<unknown>]>([
    ["a claim of a new key", "countersign_idempotency_pkey", () => idempotency.claim("new", claim)],
    [
      "the cut of a lease that ends too late",
      "countersign_idempotency_pkey",
      () => idempotency.claim("payout-1001", { ...claim, token: "b", leaseMs: 600_000 }),
    ],
    ["a takeover", "countersign_idempotency_pkey", () => idempotency.claim("payout-102", claim)],
    ["a read", "countersign_idempotency_pkey", () => idempotency.read("payout-7")],
    ["a heartbeat", "countersign_idempotency_open", () => idempotency.heartbeat("payout-1", "a", 60_000)],
    // By the one index or the other, as the version of the server sees it.
    ["a completion", "countersign_idempotency_", () => idempotency.complete("payout-1", "a")],
    ["a release", "countersign_idempotency_pkey", () => idempotency.release("payout-501", "a")],
    [
      "an operator's decision",
      "countersign_idempotency_pkey",
      () => idempotency.resolve("payout-1000", "done", { fence: 1000 }),
    ],
    [
      "a page of held keys",
      "countersign_idempotency_open",
      () => idempotency.list({ state: "held", limit: 5 }),
    ],
    [
      "a page of running keys",
      "countersign_idempotency_open",
      () => idempotency.list({ state: "running", limit: 5 }),
    ],
    [
      "a page of done keys",
      "countersign_idempotency_pkey",
      () => idempotency.list({ state: "done", limit: 5 }),
    ],
    ["the pruning of keys", "countersign_idempotency_until", () => idempotency.prune()],
    ["the pruning of nonces", "countersign_nonces_until", () => nonces.prune()],
  ])("%s walks over no table, but uses %s", async (_name, index, step) => {
    plans.length = 0;
    await step();
    expect(plans.length).toBeGreaterThan(0);
    expect(plans.join("\n")).toContain(index);
    expect(plans.join("\n")).not.toMatch(/Seq Scan on countersign|Sort/);
  });
});

/** EXPLAIN takes no parameters without running the statement in PostgreSQL 15. */
function inline(text: string, values: readonly unknown[] = []): string {
  return text.replaceAll(/\$(\d+)/g, (_match, number: string) => {
    const value = values[Number(number) - 1];
    if (value === null || value === undefined) return "NULL";
    if (Buffer.isBuffer(value)) return `'\\x${value.toString("hex")}'::bytea`;
    return typeof value === "string" ? escapeLiteral(value) : JSON.stringify(value);
  });
}
