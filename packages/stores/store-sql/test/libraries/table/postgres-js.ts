import postgres, { type Options, type PostgresType, type TransactionSql } from "postgres";
import { fromPostgresJs } from "@countersign/store-sql/postgres-js";
import { openTable, poolSize, servers, type TableRow, unusedTable } from "./row.ts";

export const postgresJsRows: readonly TableRow<TransactionSql>[] = [
  postgresJsRow("postgres.js", {}),
  postgresJsRow("postgres.js without prepared statements, in camel case", {
    prepare: false,
    transform: postgres.camel,
  }),
];

export function postgresJsRow(
  name: string,
  options: Options<Record<string, PostgresType>>,
  url: string = servers.postgresql,
): TableRow<TransactionSql> {
  return {
    name,
    engine: "postgresql",
    lacks: ["setting the isolation"],
    tellsRollback: true,
    async open() {
      const table = unusedTable();
      const sql = postgres(url, { ...options, max: poolSize, onnotice: () => {} });
      return {
        ...(await openTable(fromPostgresJs(sql), table)),
        exec: (tx, text) => tx.unsafe(text),
        insertByHandler: async (tx, id) => tx`INSERT INTO ${tx(table)} ${tx({ id })}`,
        nest: (tx, work) => tx.savepoint(work),
        nonTransaction: sql,
        async end() {
          await sql`DROP TABLE ${sql(table)}`;
          // It waits forever for a connection that a pooler has ended in the middle of a statement.
          await sql.end({ timeout: 1 });
        },
      };
    },
  };
}
