import { createStores } from "@countersign/store-sql";
import { fromMysql2 } from "@countersign/store-sql/mysql2";
import { expect, test } from "@jest/globals";
import { createPool } from "mysql2/promise";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";

function faultOf(error: unknown) {
  const pool = createPool("mysql://root@127.0.0.1:1/test");
  const stores = createStores({ database: fromMysql2(pool), pruneIntervalMs: 0 });
  afterTest(async () => {
    stores.close();
    await pool.end();
  });
  return stores.transactions.faultOf(error);
}

const sqlState = "HY000";

test.each<[string, unknown, string | undefined]>([
  ["a deadlock", { errno: 1213, sqlState: "40001", code: "ER_LOCK_DEADLOCK" }, "conflict"],
  ["a row that changed after the snapshot", { errno: 1020, sqlState }, "conflict"],
  ["a lock wait", { errno: 1205, sqlState }, "locked"],
  ["a connection that was killed", { errno: 1927, sqlState: "70100" }, "unavailable"],
  ["a server that ends", { errno: 1053, sqlState: "08S01" }, "unavailable"],
  ["a lost line", { code: "PROTOCOL_CONNECTION_LOST", fatal: true }, "unavailable"],
  ["a refused connection", { code: "ECONNREFUSED", errno: -111 }, "unavailable"],
  ["a reset line", { code: "ECONNRESET" }, "unavailable"],
  ["a statement after the line was lost", { fatal: true, message: "closed state" }, "unavailable"],
  ["the pool of the MariaDB connector", { errno: 45_028, sqlState }, "unavailable"],
  ["a duplicate", { errno: 1062, sqlState: "23000", code: "ER_DUP_ENTRY" }, "refused"],
  ["a deadlock that TypeORM wraps", { driverError: { errno: 1213 } }, "conflict"],
  ["one that Prisma tells in meta", { code: "P2010", meta: { code: "1213" } }, "conflict"],
  ["a handler's own error", new Error("no"), undefined],
  ["a handler's own code", { code: "INSUFFICIENT_FUNDS" }, undefined],
  ["no error at all", undefined, undefined],
])("faultOf tells %s", (_case, error, fault) => {
  expect(faultOf(error)).toBe(fault);
  expect(faultOf(new Error("wrapped", { cause: error }))).toBe(fault);
});
