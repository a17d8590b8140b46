import type { PayStep } from "../../packages/stores/store-contract/dist/model/step.js";
import { createPostgresStores, migratePostgres } from "@countersign/store-postgres";
import { Client, type ClientBase, Pool } from "pg";
import { isolatedName } from "../support/servers/engines.ts";
import { type Clock, type Engine, type Platform, type ProcessIndex, retentionMs } from "./engine.ts";

// SQLSTATE of a lock_timeout.
const lockNotAvailable = "55P03";
const deadlockDetected = "40P01";

/** PostgreSQL: each process has a pool of its own, all runs share a schema that is emptied before each. */
export async function postgresEngine(url: string): Promise<Engine> {
  const schema = isolatedName("model");
  const admin = new Pool({ connectionString: url, max: 1 });
  await admin.query(`CREATE SCHEMA "${schema}"`);
  await migratePostgres(admin, { schema });
  await admin.query(`CREATE TABLE "${schema}".payments (key text NOT NULL)`);
  const pools: [Pool, Pool] = [newPool(url), newPool(url)];
  return {
    pays: true,
    numRuns: 300,
    async open(clock) {
      await admin.query(`DELETE FROM "${schema}".countersign_idempotency; DELETE FROM "${schema}".payments`);
      return openPostgres({ url, schema, pools, clock });
    },
    async close() {
      await Promise.all(pools.map((pool) => pool.end()));
      await drop(admin, schema);
      await admin.end();
    },
  };
}

/** Again after a deadlock: the session of a client that has gone may still hold rows. */
async function drop(admin: Pool, schema: string): Promise<void> {
  for (;;) {
    try {
      // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
      await admin.query(`DROP SCHEMA "${schema}" CASCADE`);
      return;
    } catch (error) {
      if (Reflect.get(Object(error), "code") !== deadlockDetected) throw error;
    }
  }
}

interface Parts {
  readonly url: string;
  readonly schema: string;
  readonly pools: readonly [Pool, Pool];
  readonly clock: Clock;
}

function openPostgres({ url, schema, pools, clock }: Parts): Platform {
  const start = (pool: Pool) =>
    createPostgresStores({ pool, schema, retentionMs, pruneIntervalMs: 0, now: () => clock.nowMs });
  const running = [start(pools[0]), start(pools[1])] as const;

  const payOn = async (client: ClientBase, { key, token }: PayStep, by: ProcessIndex): Promise<unknown> => {
    await client.query("BEGIN");
    await client.query(`INSERT INTO "${schema}".payments VALUES ($1)`, [JSON.stringify(key)]);
    return running[by].idempotency.completeIn?.(client, key, token);
  };
  return {
    store: (index) => running[index].idempotency,
    payments: {
      pay: (by, step) =>
        step.ending === "crash"
          ? cutOff(url, (client) => payOn(client, step, by))
          : committed(pools[by], step, (client) => payOn(client, step, by)),
      async paidKeys() {
        const { rows } = await pools[0].query<{ key: string }>(`SELECT key FROM "${schema}".payments`);
        return rows.map(({ key }) => String(JSON.parse(key)));
      },
    },
    gaveUpWaiting: (error) =>
      error instanceof Error && Reflect.get(error.cause ?? error, "code") === lockNotAvailable,
    close() {
      for (const stores of running) stores.close();
    },
  };
}

type Work = (client: ClientBase) => Promise<unknown>;

async function committed(pool: Pool, { ending }: PayStep, work: Work): Promise<unknown> {
  const client = await pool.connect();
  try {
    const answer = await work(client);
    await client.query(answer === "ok" && ending === "commit" ? "COMMIT" : "ROLLBACK");
    client.release();
    return answer;
  } catch (error) {
    client.release(true);
    throw error;
  }
}

// The connection of a killed process: the server rolls back when it is gone, and closes its end after that.
async function cutOff(url: string, work: Work): Promise<unknown> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

function newPool(url: string): Pool {
  return new Pool({ connectionString: url, max: 6 });
}
