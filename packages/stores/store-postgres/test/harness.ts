import type {
  AnswerStoreHarness,
  IdempotencyStoreHarness,
  NonceStoreHarness,
} from "@countersign/store-contract";
import type { AnswerStore } from "@countersign/idempotency";
import {
  type PostgresStores,
  type PostgresStoresOptions,
  createPostgresAnswers,
  createPostgresStores,
  migratePostgres,
  migratePostgresAnswers,
  withPostgresTransaction,
} from "@countersign/store-postgres";
import type { PostgresTransaction } from "../dist/queryable.js";
import { Pool } from "pg";
import { isolatedName, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import type { PrivatePostgres } from "@countersign/test-support/servers/private-postgres.ts";
import { testClock } from "@countersign/test-support/runs/after-test.ts";

interface Engine {
  /** Default the shared server. */
  readonly url?: string | undefined;
  readonly hasClock?: boolean | undefined;
  /** A server that a case may stop. */
  readonly server?: PrivatePostgres | undefined;
}

/** Stores on a schema of their own, which goes with them. */
async function makeStores<Made extends { close(): void } = PostgresStores>(
  { url = postgresUrl, hasClock = false, server }: Engine,
  create: (options: PostgresStoresOptions) => Made,
) {
  const connectionString = server?.url ?? url;
  const pools: Pool[] = [];
  const made: Made[] = [];
  const schema = isolatedName("pg");
  const clock = hasClock ? testClock() : undefined;
  const connect = (): Pool => {
    const pool = new Pool({ connectionString });
    pool.on("error", () => {});
    pools.push(pool);
    return pool;
  };
  const another = (): Made => {
    const stores = create({ pool: connect(), schema, now: clock?.now, pruneIntervalMs: 0 });
    made.push(stores);
    return stores;
  };
  const payments = connect();
  await migratePostgres(payments, { schema });
  await migratePostgresAnswers(payments, { schema });
  // It can be repeated.
  await migratePostgresAnswers(payments, { schema });
  return {
    stores: another(),
    another,
    payments,
    harness: {
      fill: () => refuseInserts(payments, schema),
      ...(clock === undefined ? {} : { advance: clock.advance }),
      ...(server === undefined
        ? {}
        : { engine: { stop: () => server.stop("immediate"), start: () => server.start(), durable: true } }),
      async close() {
        for (const stores of made) stores.close();
        await payments.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
        await Promise.all(pools.map((pool) => pool.end()));
      },
    },
  };
}

/** What a server whose disk is full answers to every row that needs room. */
async function refuseInserts(pool: Pool, schema: string): Promise<void> {
  const trigger = (table: string): string =>
    `CREATE TRIGGER full_disk BEFORE INSERT ON ${schema}.countersign_${table} EXECUTE FUNCTION ${schema}.full_disk();`;
  await pool.query(
    `CREATE FUNCTION ${schema}.full_disk() RETURNS trigger LANGUAGE plpgsql AS
     $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$;
     ${trigger("idempotency")} ${trigger("nonces")} ${trigger("answers")}`,
  );
}

export async function idempotencyHarness(
  engine: Engine,
): Promise<IdempotencyStoreHarness<PostgresTransaction>> {
  const { stores, another, payments, harness } = await makeStores(engine, createPostgresStores);
  return {
    ...harness,
    store: stores.idempotency,
    another: () => another().idempotency,
    transaction: (work) => withPostgresTransaction(payments, async (client) => work(client)),
  };
}

export async function nonceHarness(engine: Engine): Promise<NonceStoreHarness> {
  const { stores, another, harness } = await makeStores(engine, createPostgresStores);
  return { ...harness, store: stores.nonces, another: () => another().nonces };
}

export async function answerHarness(engine: Engine): Promise<AnswerStoreHarness> {
  const { stores, another, harness } = await makeStores<AnswerStore>(engine, createPostgresAnswers);
  return { ...harness, store: stores, another };
}
