import { fromPg } from "@countersign/databases";
import { createPostgresStores, migratePostgres } from "@countersign/store-postgres";
import { describe, expect, test } from "@jest/globals";
import type { Pool } from "pg";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import {
  type PrivatePostgres,
  startPrivatePostgres,
} from "@countersign/test-support/servers/private-postgres.ts";
import { connectPool } from "./connections.ts";
import { payerOn, payUntilLost, sorted } from "../../databases/test/table/payer.ts";
import { claimOf, keyOf, payIn } from "./payouts.ts";

const timeoutMs = 120_000;

(postgresUrl === undefined ? describe.skip : describe)("a failover to a standby", () => {
  test(
    "that is synchronous forgets no payment that was answered, and pays none twice",
    async () => {
      // Payments raise this themselves, so that they wait for the standby.
      const cluster = await openCluster({ synchronous_commit: "off" });
      if (cluster === undefined) return;
      const { primary, first, second } = cluster;
      await first.pool.query("ALTER SYSTEM SET synchronous_standby_names = '*'");
      await first.pool.query("SELECT pg_reload_conf()");
      await eventually(async () => (await replication(first.pool)) === "sync");
      const { keys, answered, lost } = payUntilLost((key) => first.pay(key).catch(() => "lost"), "begun");
      await eventually(() => answered.length >= 100);
      await primary.stop("immediate");
      expect(new Set(await lost)).toEqual(new Set(["lost"]));
      await promote(second.pool);
      const kept = await second.paid();
      expect(answered.filter((key) => !kept.includes(key))).toEqual([]);
      const retried = await Promise.all(keys.map((key) => second.pay(key)));
      expect(sorted(keys.filter((_key, index) => retried[index] === "done"))).toEqual(kept);
      expect(await second.paid()).toEqual(sorted(keys));
    },
    timeoutMs,
  );

  test(
    "that is asynchronous forgets the last payments with their keys: their retries pay there once",
    async () => {
      const cluster = await openCluster({});
      if (cluster === undefined) return;
      const { primary, standby, first, second } = cluster;
      expect(await first.pay("early")).toBe("begun");
      await eventually(async () => (await second.paid()).length === 1);
      await standby.stop();
      expect(await first.pay("late")).toBe("begun");
      await primary.stop("immediate");
      await standby.start();
      await promote(second.pool);
      expect(await second.paid()).toEqual(["early"]);
      expect(await second.pay("early")).toBe("done");
      expect(await Promise.all(["late", "late", "late"].map((key) => second.pay(key)))).toEqual(
        expect.arrayContaining(["begun", "done", "done"]),
      );
      expect(await second.paid()).toEqual(["early", "late"]);
    },
    timeoutMs,
  );

  test(
    "is used by the stores that the standby had refused, once it is promoted",
    async () => {
      const cluster = await openCluster({});
      if (cluster === undefined) return;
      const { first, second } = cluster;
      await first.pay("early");
      await eventually(async () => (await second.paid()).length === 1);
      await expect(second.pay("early")).rejects.toThrow(/is a standby; connect the pool to the primary/);
      await expect(second.pay("other")).rejects.toThrow(/is a standby/);
      expect(await second.answered("other")).toBe("transaction-unavailable");
      await promote(second.pool);
      expect(await second.pay("early")).toBe("done");
      expect(await second.pay("other")).toBe("begun");
      expect(await second.paid()).toEqual(["early", "other"]);
    },
    timeoutMs,
  );
});

interface Side {
  readonly pool: Pool;
  /** The status of the key; the payment is written where it is `begun`. */
  pay(key: string): Promise<string | undefined>;
  /** What an endpoint answers to the same. */
  answered(key: string): Promise<unknown>;
  /** Sorted. */
  paid(): Promise<string[]>;
}

/** A primary and its standby, each with stores of a process of its own. */
async function openCluster(settings: Readonly<Record<string, string>>): Promise<
  | {
      readonly primary: PrivatePostgres;
      readonly standby: PrivatePostgres;
      readonly first: Side;
      readonly second: Side;
    }
  | undefined
> {
  const primary = await startPrivatePostgres({ settings });
  if (primary === undefined) return undefined;
  afterTest(() => primary.close());
  const pool = connectPool({ connectionString: primary.url });
  await migratePostgres(pool);
  await pool.query("CREATE TABLE payouts (id text)");
  const standby = await startPrivatePostgres({ settings, standbyOf: primary });
  if (standby === undefined) return undefined;
  afterTest(() => standby.close());
  await eventually(async () => (await replication(pool)) !== undefined);
  return { primary, standby, first: sideOf(primary), second: sideOf(standby) };
}

function sideOf({ url }: PrivatePostgres): Side {
  const pool = connectPool({ connectionString: url, max: 10 });
  const stores = createPostgresStores({ database: fromPg(pool), pruneIntervalMs: 0 });
  const { transactions, close } = stores;
  afterTest(() => close());
  const write = (tx: Pick<Pool, "query">, key: string) => tx.query("INSERT INTO payouts VALUES ($1)", [key]);
  return {
    pool,
    answered: payerOn(stores, write),
    async pay(key) {
      const work = (tx: Pick<Pool, "query">) => write(tx, key);
      return (await payIn(transactions, claimOf([keyOf(key)]), work)).keys[0]?.status;
    },
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
