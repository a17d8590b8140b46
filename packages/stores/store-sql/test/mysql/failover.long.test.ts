import { fromMysql2 } from "@countersign/store-sql/mysql2";
import { createStores, migrate } from "@countersign/store-sql";
import { describe } from "@jest/globals";
import type { Pool, PoolConnection, RowDataPacket } from "mysql2/promise";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { mysqlUrl } from "@countersign/test-support/servers/engines.ts";
import { type MariadbServer, startMariadbServer } from "@countersign/test-support/servers/mariadb-server.mjs";
import { reportMissing } from "@countersign/test-support/servers/server-binaries.mjs";
import { type Cluster, type Side, describeFailover } from "../libraries/table/failover.ts";
import { payerOn, sorted } from "../libraries/table/payer.ts";
import { connectPool } from "./connections.ts";

describeFailover(mysqlUrl === undefined ? describe.skip : describe, {
  to: "a replica",
  synchronous: "semi-synchronous",
  refusal: /read-only; connect to the primary/,
  open: openCluster,
});

interface MariadbSide extends Side {
  /** By root, whom read_only does not stop. */
  readonly admin: Pool;
}

/** A primary and a replica that follows it by GTID, each with stores of a process of its own. */
async function openCluster(isSynchronous: boolean): Promise<Cluster | undefined> {
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
  await migrate(fromMysql2(first.admin));
  await first.admin.query("CREATE TABLE payouts (id VARCHAR(60) PRIMARY KEY) ENGINE = InnoDB");
  await eventually(async () => (await second.paid().catch(() => undefined)) !== undefined);
  if (isSynchronous) await makeSemiSynchronous(first.admin, second.admin);
  return {
    first,
    second,
    kill: () => primary.kill(),
    stopFollowing: () => second.admin.query("STOP SLAVE"),
    promote: () => promote(second.admin),
  };
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

function sideOf({ url }: MariadbServer): MariadbSide {
  const admin = connectPool({ uri: url });
  const pool = connectPool({ uri: url.replace("root@", "platform@") });
  const stores = createStores({ database: fromMysql2(pool), pruneIntervalMs: 0 });
  afterTest(() => stores.close());
  return {
    admin,
    ready: stores.ready,
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
