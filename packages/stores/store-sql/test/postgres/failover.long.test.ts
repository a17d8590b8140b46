import { fromPg } from "@countersign/store-sql/pg";
import { createStores, migrate } from "@countersign/store-sql";
import { describe } from "@jest/globals";
import type { Pool } from "pg";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import {
  type PrivatePostgres,
  startPrivatePostgres,
} from "@countersign/test-support/servers/private-postgres.ts";
import { connectPool } from "./connections.ts";
import { type Cluster, type Side, describeFailover } from "../libraries/table/failover.ts";
import { payerOn, sorted } from "../libraries/table/payer.ts";

describeFailover(postgresUrl === undefined ? describe.skip : describe, {
  to: "a standby",
  synchronous: "synchronous",
  refusal: /is a standby; connect the pool to the primary/,
  open: openCluster,
});

/** A primary and its standby, each with stores of a process of its own. */
async function openCluster(isSynchronous: boolean): Promise<Cluster | undefined> {
  // Payments raise this themselves, so that they wait for the standby.
  const settings: Record<string, string> = isSynchronous ? { synchronous_commit: "off" } : {};
  const primary = await startPrivatePostgres({ settings });
  if (primary === undefined) return undefined;
  afterTest(() => primary.close());
  const pool = connectPool({ connectionString: primary.url });
  await migrate(pool);
  await pool.query("CREATE TABLE payouts (id text)");
  const standby = await startPrivatePostgres({ settings, standbyOf: primary });
  if (standby === undefined) return undefined;
  afterTest(() => standby.close());
  await eventually(async () => (await replication(pool)) !== undefined);
  if (isSynchronous) {
    await pool.query("ALTER SYSTEM SET synchronous_standby_names = '*'");
    await pool.query("SELECT pg_reload_conf()");
    await eventually(async () => (await replication(pool)) === "sync");
  }
  const second = sideOf(standby);
  let isStopped = false;
  return {
    first: sideOf(primary),
    second,
    kill: () => primary.stop("immediate"),
    async stopFollowing() {
      isStopped = true;
      await standby.stop();
    },
    async promote() {
      if (isStopped) await standby.start();
      await promote(second.pool);
    },
  };
}

function sideOf({ url }: PrivatePostgres): Side & { readonly pool: Pool } {
  const pool = connectPool({ connectionString: url, max: 10 });
  const stores = createStores({ database: fromPg(pool), pruneIntervalMs: 0 });
  afterTest(() => stores.close());
  return {
    pool,
    ready: stores.ready,
    pay: payerOn(stores, (tx: Pick<Pool, "query">, key) =>
      tx.query("INSERT INTO payouts VALUES ($1)", [key]),
    ),
    async paid() {
      const { rows } = await pool.query<{ id: string }>("SELECT id FROM payouts");
      return sorted(rows.map(({ id }) => id));
    },
  };
}

/** How its only standby follows the server, undefined where none streams. */
async function replication(pool: Pool): Promise<string | undefined> {
  const streaming = "SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'";
  return (await pool.query<{ sync_state: string }>(streaming)).rows[0]?.sync_state;
}

async function promote(pool: Pool): Promise<void> {
  await eventually(async () => {
    try {
      const { rows } = await pool.query<{ ok: boolean }>("SELECT pg_promote() AS ok");
      return rows[0]?.ok === true;
    } catch {
      return false;
    }
  });
}
