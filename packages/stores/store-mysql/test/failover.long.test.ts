import { fromMysql2 } from "@countersign/databases";
import { createMysqlStores, migrateMysql } from "@countersign/store-mysql";
import { describe, expect, test } from "@jest/globals";
import type { Pool, PoolConnection, RowDataPacket } from "mysql2/promise";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { mysqlUrl } from "@countersign/test-support/servers/engines.ts";
import { type MariadbServer, startMariadbServer } from "@countersign/test-support/servers/mariadb-server.mjs";
import { reportMissing } from "@countersign/test-support/servers/server-binaries.mjs";
import { payerOn, payUntilLost, sorted } from "../../databases/test/table/payer.ts";
import { connectPool } from "./connections.ts";

const timeoutMs = 120_000;

(mysqlUrl === undefined ? describe.skip : describe)("a failover to a replica", () => {
  test(
    "that is semi-synchronous forgets no payment that was answered, and pays none twice",
    async () => {
      const cluster = await openCluster();
      if (cluster === undefined) return;
      const { primary, first, second } = cluster;
      await makeSemiSynchronous(first.admin, second.admin);
      const { keys, answered, lost } = payUntilLost(first.pay, 200);
      await eventually(() => answered.length >= 100);
      await primary.kill();
      for (const answer of await lost) expect(answer).toMatch(/^(commit-unknown|transaction-unavailable)$/);
      await promote(second.admin);
      const kept = await second.paid();
      expect(answered.filter((key) => !kept.includes(key))).toEqual([]);
      const retried = await Promise.all(keys.map((key) => second.pay(key)));
      const isKnown = (index: number): boolean => retried[index] === "already-processed";
      expect(sorted(keys.filter((_key, index) => isKnown(index)))).toEqual(kept);
      expect(await second.paid()).toEqual(sorted(keys));
    },
    timeoutMs,
  );

  test(
    "that is asynchronous forgets the last payments with their keys: their retries pay there once",
    async () => {
      const cluster = await openCluster();
      if (cluster === undefined) return;
      const { primary, first, second } = cluster;
      expect(await first.pay("early")).toBe(200);
      await eventually(async () => (await second.paid()).length === 1);
      await second.admin.query("STOP SLAVE");
      expect(await first.pay("late")).toBe(200);
      await primary.kill();
      await promote(second.admin);
      expect(await second.paid()).toEqual(["early"]);
      expect(await second.pay("early")).toBe("already-processed");
      const retried = await Promise.all(["late", "late", "late"].map((key) => second.pay(key)));
      expect(sorted(retried)).toEqual([200, "already-processed", "already-processed"]);
      expect(await second.paid()).toEqual(["early", "late"]);
    },
    timeoutMs,
  );

  test(
    "is used by the stores that the replica had refused, once it is promoted",
    async () => {
      const cluster = await openCluster();
      if (cluster === undefined) return;
      const { first, second } = cluster;
      expect(await first.pay("early")).toBe(200);
      await eventually(async () => (await second.paid()).length === 1);
      expect(await second.pay("early")).toBe("transaction-unavailable");
      expect(await second.pay("other")).toBe("transaction-unavailable");
      await promote(second.admin);
      expect(await second.pay("early")).toBe("already-processed");
      expect(await second.pay("other")).toBe(200);
      expect(await second.paid()).toEqual(["early", "other"]);
    },
    timeoutMs,
  );
});

interface Side {
  /** By root, whom read_only does not stop. */
  readonly admin: Pool;
  /** What an endpoint answers to a payment. */
  readonly pay: (key: string) => Promise<unknown>;
  /** Sorted. */
  paid(): Promise<string[]>;
}

/** A primary and a replica that follows it by GTID, each with stores of a process of its own. */
async function openCluster(): Promise<
  { readonly primary: MariadbServer; readonly first: Side; readonly second: Side } | undefined
> {
  const binlog = ["--log-bin=binlog", "--sync-binlog=1", "--binlog-format=ROW"];
  const primary = await startOwn(["--server-id=1", ...binlog]);
  const replica = await startOwn(["--server-id=2", "--read-only=1"]);
  if (primary === undefined || replica === undefined) return undefined;
  const [first, second] = [sideOf(primary), sideOf(replica)];
  await second.admin.query(
    `CHANGE MASTER TO master_host = '127.0.0.1', master_port = ${primary.port}, master_user = 'root', master_use_gtid = slave_pos`,
  );
  await second.admin.query("START SLAVE");
  // TEST USER without a password, on servers of the test's own.
  await first.admin.query("CREATE USER platform@'%'");
  await first.admin.query("GRANT ALL ON test.* TO platform@'%'");
  await migrateMysql(fromMysql2(first.admin));
  await first.admin.query("CREATE TABLE payouts (id VARCHAR(60) PRIMARY KEY) ENGINE = InnoDB");
  await eventually(async () => (await second.paid().catch(() => undefined)) !== undefined);
  return { primary, first, second };
}

async function startOwn(options: readonly string[]): Promise<MariadbServer | undefined> {
  const server = await startMariadbServer(options);
  if (server === undefined) {
    reportMissing("MariaDB", "tests of a failover are skipped. Install mariadb-server-core.");
    return undefined;
  }
  afterTest(() => server.close());
  return server;
}

function sideOf({ url }: MariadbServer): Side {
  const admin = connectPool({ uri: url });
  const pool = connectPool({ uri: url.replace("root@", "platform@") });
  const stores = createMysqlStores({ database: fromMysql2(pool), pruneIntervalMs: 0 });
  afterTest(() => stores.close());
  return {
    admin,
    pay: payerOn(stores, (tx: PoolConnection, key) => tx.query("INSERT INTO payouts VALUES (?)", [key])),
    async paid() {
      const [rows] = await admin.query<RowDataPacket[]>("SELECT id FROM payouts");
      return sorted(rows.map((row) => String(row["id"])));
    },
  };
}

/** From here on no COMMIT is answered, nor seen by others, before the replica has it. */
async function makeSemiSynchronous(primary: Pool, replica: Pool): Promise<void> {
  await replica.query("SET GLOBAL rpl_semi_sync_slave_enabled = 1");
  await replica.query("STOP SLAVE");
  await replica.query("START SLAVE");
  await primary.query("SET GLOBAL rpl_semi_sync_master_wait_point = AFTER_SYNC");
  // Without a replica it would become asynchronous after that.
  await primary.query("SET GLOBAL rpl_semi_sync_master_timeout = 600000");
  await primary.query("SET GLOBAL rpl_semi_sync_master_enabled = 1");
  await eventually(async () => {
    const [[row]] = await primary.query<RowDataPacket[]>("SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'");
    return row?.["Value"] === "1";
  });
}

/** What it has received is applied first. */
async function promote(replica: Pool): Promise<void> {
  await replica.query("STOP SLAVE IO_THREAD");
  await eventually(async () => {
    const [[slave]] = await replica.query<RowDataPacket[]>("SHOW SLAVE STATUS");
    const [[own]] = await replica.query<RowDataPacket[]>("SELECT @@gtid_slave_pos AS applied");
    return slave?.["Slave_SQL_Running"] === "No" || slave?.["Gtid_IO_Pos"] === own?.["applied"];
  });
  await replica.query("STOP SLAVE");
  await replica.query("RESET SLAVE ALL");
  await replica.query("SET GLOBAL read_only = 0");
}
