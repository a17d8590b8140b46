import {
  answerStoreContract,
  idempotencyStoreContract,
  nonceStoreContract,
} from "@countersign/store-contract";
import { testCrashes } from "@countersign/test-support/runs/contract.ts";
import { fromPg } from "@countersign/store-sql/pg";
import { createStores } from "@countersign/store-sql";
import { afterAll, afterEach, describe, expect, test } from "@jest/globals";
import { postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { startPrivatePostgres } from "@countersign/test-support/servers/private-postgres.ts";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { connectPool, createSchema, openStores, newStores } from "./connections.ts";
import { answerHarness, idempotencyHarness, nonceHarness } from "./harness.ts";
import { claimOf, keyOf, payIn } from "./payouts.ts";

// Commits are not flushed for ten seconds, unless a statement asks for it.
const settings = { synchronous_commit: "off", wal_writer_delay: "10s", fsync: "on" };
const server = postgresUrl === undefined ? undefined : await startPrivatePostgres({ settings });
const onOwnServer = server === undefined ? describe.skip : describe;
const config = { connectionString: server?.url };
const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" } as const;
const use = { scope: "s", nonce: "n", token: "a", retainMs: 60_000 };

afterAll(() => server?.close());

testCrashes(
  {
    keys: idempotencyStoreContract(() => idempotencyHarness({ server })),
    nonces: nonceStoreContract(() => nonceHarness({ server })),
    answers: answerStoreContract(() => answerHarness({ server })),
  },
  onOwnServer,
);

onOwnServer("a server with synchronous_commit off that crashes", () => {
  test("has everything again that the stores and a payment had answered", async () => {
    const { idempotency, nonces, pool, schema } = await newStores({}, config);
    const { transactions, close } = createStores({ database: fromPg(pool), schema });
    afterTest(close);
    await pool.query(`CREATE TABLE ${schema}.payouts (id int PRIMARY KEY)`);
    await pool.query("CHECKPOINT");
    const steps: [string, () => Promise<unknown>, () => Promise<unknown>, unknown][] = [
      [
        "a claim",
        () => idempotency.claim("claimed", claim),
        () => idempotency.read("claimed"),
        { state: "running" },
      ],
      ["a use", () => nonces.claim(use), () => nonces.claim({ ...use, token: "b" }), "seen"],
      [
        "a completion",
        () => idempotency.complete("claimed", "a"),
        () => idempotency.read("claimed"),
        { state: "done" },
      ],
      [
        "a payment",
        () =>
          payIn(transactions, claimOf([keyOf("paid")]), (tx) =>
            tx.query(`INSERT INTO ${schema}.payouts VALUES (1)`),
          ),
        () => idempotency.read("paid"),
        { state: "done" },
      ],
      [
        "a hold",
        async () => {
          await idempotency.claim("held", claim);
          await idempotency.hold("held", "a", "why");
        },
        () => idempotency.read("held"),
        { state: "held" },
      ],
      [
        "a release",
        async () => {
          await idempotency.claim("released", claim);
          await idempotency.release("released", "a");
        },
        async () => (await idempotency.read("released")) ?? "absent",
        "absent",
      ],
    ];
    for (const [name, step, look, expected] of steps) {
      await step();
      await server?.stop("immediate");
      await server?.start();
      await pool.query("SELECT 1").catch(() => {});
      const found = await look();
      expect({ name, found }).toEqual({
        name,
        found: typeof expected === "string" ? expected : expect.objectContaining(expected as object),
      });
    }
  });
});

onOwnServer("a server that restarts", () => {
  test("fast, in the middle of a payment: it is rolled back, and the stores go on by themselves", async () => {
    const { idempotency, pool, schema } = await newStores({}, config);
    await pool.query(`CREATE TABLE ${schema}.payouts (id int PRIMARY KEY)`);
    const { transactions, close } = createStores({ database: fromPg(pool), schema });
    afterTest(close);
    const attempt = payIn(transactions, claimOf([keyOf("k")]), async (tx) => {
      await tx.query(`INSERT INTO ${schema}.payouts VALUES (1)`);
      await server?.stop("fast");
    });
    await expect(attempt).rejects.toThrow();
    await expect(idempotency.read("k")).rejects.toThrow();
    await server?.start();
    await pool.query("SELECT 1").catch(() => {});
    expect(await idempotency.read("k")).toBeUndefined();
    expect((await pool.query(`SELECT FROM ${schema}.payouts`)).rowCount).toBe(0);
    expect(await idempotency.claim("k", claim)).toMatchObject({ status: "acquired" });
  });
});

onOwnServer("a server in another mode", () => {
  const environment = process.env["NODE_ENV"];

  afterEach(() => {
    process.env["NODE_ENV"] = environment;
  });

  test("without fsync is refused in production by the first step", async () => {
    const careless = await startPrivatePostgres({ settings: { fsync: "off" } });
    afterTest(() => careless?.close());
    const pool = connectPool({ connectionString: careless?.url });
    const schema = await createSchema(pool);
    process.env["NODE_ENV"] = "production";
    const { idempotency } = openStores(pool, { schema });
    await expect(idempotency.claim("k", claim)).rejects.toThrow(/fsync off/);
    process.env["NODE_ENV"] = environment;
    expect((await idempotency.claim("k", claim)).status).toBe("acquired");
  });
});
