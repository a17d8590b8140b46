import { fromPg } from "@countersign/store-sql/pg";
import { Pool, type PoolClient } from "pg";
import { openTable, poolSize, servers, type TableRow, unusedTable } from "./row.ts";

export function pgRow(url: string = servers.postgresql): TableRow<PoolClient> {
  return {
    name: "pg",
    engine: "postgresql",
    lacks: ["nesting"],
    tellsRollback: true,
    async open() {
      const table = unusedTable();
      const pool = new Pool({ connectionString: url, max: poolSize });
      pool.on("error", () => {});
      return {
        ...(await openTable(fromPg(pool), table)),
        exec: (tx, text) => tx.query(text),
        insertByHandler: (tx, id) => tx.query(`INSERT INTO ${table} (id) VALUES ($1)`, [id]),
        nonTransaction: pool,
        async end() {
          await pool.query(`DROP TABLE ${table}`);
          await pool.end();
        },
      };
    },
  };
}
