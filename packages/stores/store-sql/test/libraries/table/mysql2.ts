import { fromMysql2 } from "@countersign/store-sql/mysql2";
import { createPool, type PoolConnection } from "mysql2/promise";
import { openTable, poolSize, servers, type TableRow, unusedTable } from "./row.ts";

export const mysql2Row: TableRow<PoolConnection> = {
  name: "mysql2",
  engine: "mysql",
  lacks: ["nesting"],
  messages: 4,
  messagesOnMysql: 7,
  async open() {
    const table = unusedTable();
    const pool = createPool({ uri: servers.mysql, connectionLimit: poolSize });
    return {
      ...(await openTable(fromMysql2(pool), table)),
      exec: (tx, text) => tx.query(text),
      insertByHandler: (tx, id) => tx.execute(`INSERT INTO ${table} (id) VALUES (?)`, [id]),
      nonTransaction: pool,
      async end() {
        await pool.query(`DROP TABLE ${table}`);
        await pool.end();
      },
    };
  },
};
