import { fromPg } from "@countersign/store-sql/pg";
import { createStores, migrate, type Stores } from "@countersign/store-sql";
import { describe, expect, test } from "@jest/globals";
import type { Pool, PoolClient } from "pg";
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

const describePostgres = postgresUrl === undefined ? describe.skip : describe;

// PostgreSQL shows what has committed here and is confirmed by no standby yet: the session ended while COMMIT waited.
describePostgres("a 409 of a payment that no standby has confirmed", () => {
  const timeoutMs = 120_000;
  const lease = { fingerprint: "f", leaseMs: 60_000, recovery: "hold" } as const;

  interface Step {
    /** What gets no answer, as its session ends while its commit waits. */
    readonly lost: (side: PostgresSide) => Promise<unknown>;
    /** Says that it was done. */
    readonly told: (side: PostgresSide) => Promise<unknown>;
    readonly saying: unknown;
    /** What is said on the server that has taken over and knows nothing of it. */
    readonly behind: unknown;
  }

  const statusOf = (side: PostgresSide, token: string) =>
    Promise.resolve(side.stores.idempotency.claim("k", { ...lease, token })).then(({ status }) => status);
  const nonce = (token: string) => ({ scope: "s", nonce: "n", token, retainMs: 60_000 });

  test.each<[string, Step]>([
    [
      "in one transaction",
      { lost: ({ pay }) => pay("k"), told: ({ pay }) => pay("k"), saying: "already-processed", behind: 200 },
    ],
    [
      "in lease mode",
      {
        lost: async ({ stores }) => stores.idempotency.complete("k", "owner"),
        told: (side) => statusOf(side, "duplicate"),
        saying: "done",
        behind: "in-flight",
      },
    ],
    [
      "for who reads the record, to give the first answer again",
      {
        lost: async ({ stores }) => stores.idempotency.complete("k", "owner"),
        told: async ({ stores }) => (await stores.idempotency.read("k"))?.state,
        saying: "done",
        behind: "running",
      },
    ],
    [
      "as a 401 of a nonce that was used",
      {
        lost: async ({ stores }) => stores.nonces.claim(nonce("first")),
        told: async ({ stores }) => stores.nonces.claim(nonce("replay")),
        saying: "seen",
        behind: "fresh",
      },
    ],
  ])(
    "is not sent %s: it waits for a standby, and never comes when the other server takes over without it",
    async (_case, { lost, told, saying, behind }) => {
      const cluster = await openCluster(true);
      if (cluster === undefined) return;
      const { first, second, kill, stopFollowing } = cluster;
      await first.stores.idempotency.claim("k", { ...lease, token: "owner" });
      if (behind === 200) await first.stores.idempotency.release("k", "owner");
      await stopFollowing();
      const losing = lost(first).catch((error: unknown) => error);
      await endWaiting(first.pool);
      expect(await losing).not.toBe(saying);
      let answer: unknown;
      const telling = told(first)
        .catch((error: unknown) => error)
        .then((said) => (answer = said));
      await eventually(async () => (await waiting(first.pool)).length === 1);
      expect(answer).toBeUndefined();
      await kill();
      await telling;
      expect(answer).not.toBe(saying);
      await cluster.promote();
      expect(await told(second)).toBe(behind);
      expect(await second.paid()).toEqual(behind === 200 ? ["k"] : []);
    },
    timeoutMs,
  );
});

interface PostgresSide extends Side {
  readonly pool: Pool;
  readonly stores: Stores<PoolClient>;
}

/** The sessions whose commit waits for a standby. */
async function waiting(pool: Pool): Promise<readonly { pid: number }[]> {
  const text = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
  return (await pool.query<{ pid: number }>(text)).rows;
}

async function endWaiting(pool: Pool): Promise<void> {
  let pids: readonly { pid: number }[] = [];
  await eventually(async () => {
    pids = await waiting(pool);
    return pids.length > 0;
  });
  for (const { pid } of pids) await pool.query("SELECT pg_terminate_backend($1)", [pid]);
  await eventually(async () => (await waiting(pool)).length === 0);
}

interface PostgresCluster extends Cluster {
  readonly first: PostgresSide;
  readonly second: PostgresSide;
}

/** A primary and its standby, each with stores of a process of its own. */
async function openCluster(isSynchronous: boolean): Promise<PostgresCluster | undefined> {
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

function sideOf({ url }: PrivatePostgres): PostgresSide {
  const pool = connectPool({ connectionString: url, max: 10 });
  const stores = createStores({ database: fromPg(pool), pruneIntervalMs: 0 });
  afterTest(() => stores.close());
  return {
    pool,
    stores,
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
