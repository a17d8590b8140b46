import { fromMysql2 } from "@countersign/databases";
import { createMysqlStores, migrateMysql } from "@countersign/store-mysql";
import { createPool } from "mysql2/promise";

const pool = createPool(process.env["MYSQL_URL"] ?? "mysql://127.0.0.1/test");
const database = fromMysql2(pool);
export const stores = createMysqlStores({ database });

/** Creates what is missing of the tables; before the first request. */
export const migrate = (): Promise<void> => migrateMysql(database);
