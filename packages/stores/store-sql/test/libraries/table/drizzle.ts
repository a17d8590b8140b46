import { sql } from "drizzle-orm";
import { mysqlTable, varchar as mysqlVarchar } from "drizzle-orm/mysql-core";
import { drizzle as drizzleMysql, type MySql2Database } from "drizzle-orm/mysql2";
import { drizzle, type NodePgDatabase } from "drizzle-orm/node-postgres";
import { pgTable, varchar } from "drizzle-orm/pg-core";
import { createPool } from "mysql2/promise";
import { Pool } from "pg";
import { fromDrizzle } from "@countersign/store-sql/drizzle";
import { openTable, poolSize, servers, type TableRow, unusedTable } from "./row.ts";

type PgTx = Parameters<Parameters<NodePgDatabase["transaction"]>[0]>[0];
type MysqlTx = Parameters<Parameters<MySql2Database["transaction"]>[0]>[0];

export const drizzleOnPostgresql: TableRow<PgTx> = {
  name: "Drizzle on postgresql",
  engine: "postgresql",
  async open() {
    const table = unusedTable();
    const payments = pgTable(table, { id: varchar().primaryKey() });
    const pool = new Pool({ connectionString: servers.postgresql, max: poolSize });
    const db = drizzle(pool);
    return {
      ...(await openTable(fromDrizzle(db), table)),
      exec: (tx, text) => tx.execute(sql.raw(text)),
      insertByHandler: (tx, id) => tx.insert(payments).values({ id }).execute(),
      nest: (tx, work) => tx.transaction(work),
      nonTransaction: db,
      async end() {
        await pool.query(`DROP TABLE ${table}`);
        await pool.end();
      },
    };
  },
};

export const drizzleOnMysql: TableRow<MysqlTx> = {
  name: "Drizzle on mysql",
  engine: "mysql",
  async open() {
    const table = unusedTable();
    const payments = mysqlTable(table, { id: mysqlVarchar({ length: 40 }).primaryKey() });
    const pool = createPool({ uri: servers.mysql, connectionLimit: poolSize });
    const db = drizzleMysql(pool);
    return {
      ...(await openTable(fromDrizzle(db), table)),
      exec: (tx, text) => tx.execute(sql.raw(text)),
      insertByHandler: (tx, id) => tx.insert(payments).values({ id }).execute(),
      nest: (tx, work) => tx.transaction(work),
      nonTransaction: db,
      async end() {
        await pool.query(`DROP TABLE ${table}`);
        await pool.end();
      },
    };
  },
};
