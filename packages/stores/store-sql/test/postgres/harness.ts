import type { StoreHarnesses } from "@countersign/store-contract";
import type { AnswerStore, Database } from "@countersign/idempotency";
import { fromPg } from "@countersign/store-sql/pg";
import {
  type PoolStores,
  type PostgresStoresOptions,
  createAnswers,
  createStores,
  migrate,
} from "@countersign/store-sql";
import { Pool, type PoolClient } from "pg";
import { isolatedName, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import type { PrivatePostgres } from "@countersign/test-support/servers/private-postgres.ts";
import { testClock } from "@countersign/test-support/runs/after-test.ts";
import { pastGate } from "./payouts.ts";
import { returnSchema, takeSchema } from "./spare-schemas.ts";

type PoolOptions = Omit<PostgresStoresOptions, "prepare">;

interface Engine {
  /** Default the shared server. */
  readonly url?: string | undefined;
  readonly hasClock?: boolean | undefined;
  /** A server that a case may stop. */
  readonly server?: PrivatePostgres | undefined;
}

/** Stores on a schema of their own, which goes with them. */
async function makeStores<Made extends { close(): void } = PoolStores>(
  { url = postgresUrl, hasClock = false, server }: Engine,
  create: (options: PoolOptions & { readonly pool: Pool }) => Made,
) {
  const connectionString = server?.url ?? url;
  const pools: Pool[] = [];
  const made: Made[] = [];
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
  const isShared = connectionString === postgresUrl;
  const schema = isShared ? await takeSchema(payments) : isolatedName("pg");
  // It can be repeated.
  await migrate(payments, { schema });
  return {
    stores: another(),
    another,
    payments,
    schema,
    harness: {
      fill: () => refuseInserts(payments, schema),
      ...(clock === undefined ? {} : { advance: clock.advance }),
      ...(server === undefined
        ? {}
        : { engine: { stop: () => server.stop("immediate"), start: () => server.start(), durable: true } }),
      async close() {
        for (const stores of made) stores.close();
        if (isShared) await returnSchema(payments, schema);
        else await payments.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
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

type Create = (options: PoolOptions) => PoolStores;

export async function idempotencyHarness(
  engine: Engine,
  create: Create = createStores,
): Promise<StoreHarnesses["idempotency"]> {
  const { stores, another, harness } = await makeStores(engine, create);
  return { ...harness, store: stores.idempotency, another: () => another().idempotency };
}

export async function nonceHarness(
  engine: Engine,
  create: Create = createStores,
): Promise<StoreHarnesses["nonces"]> {
  const { stores, another, harness } = await makeStores(engine, create);
  return { ...harness, store: stores.nonces, another: () => another().nonces };
}

export async function answerHarness(
  engine: Engine,
  create: (options: PoolOptions) => AnswerStore<PoolClient> = createAnswers,
): Promise<StoreHarnesses<PoolClient>["answers"]> {
  const { stores, another, harness } = await makeStores(engine, create);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- absent without the option, as keepIn is
  const database = stores.database as Database<PoolClient>;
  return {
    ...harness,
    store: stores,
    another,
    transaction: (work) =>
      database.run(async (tx) => {
        // As begin() does: the server knows a transaction by what it has written.
        await tx.query("SELECT txid_current()");
        await work(tx);
      }),
  };
}

/** Stores over the library that `as` makes of pg. */
export async function paymentHarness(
  engine: Engine,
  as: (database: Database<PoolClient>) => Database<PoolClient> = (database) => database,
): Promise<StoreHarnesses<PoolClient>["transactions"] & StoreHarnesses<PoolClient>["work"]> {
  const { stores, another, payments, schema, harness } = await makeStores(engine, ({ pool, ...options }) =>
    createStores({ ...options, pool: undefined, database: as(fromPg(pool)) }),
  );
  await payments.query(`CREATE TABLE ${schema}.payouts (id text PRIMARY KEY)`);
  return {
    ...harness,
    store: stores,
    another,
    write: (tx, id) => tx.query(`INSERT INTO ${schema}.payouts VALUES ($1)`, [id]),
    async written() {
      const { rows } = await payments.query<{ id: string }>(`SELECT id FROM ${schema}.payouts`);
      return rows.map(({ id }) => id);
    },
    end: pastGate,
    swallow: (tx) => tx.query("SELECT 1 / 0").catch(() => {}),
  };
}
