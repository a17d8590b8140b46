import * as library from "kysely";
import { CamelCasePlugin, Kysely, MysqlDialect, PostgresDialect, sql, type Transaction } from "kysely";
import { createPool } from "mysql2";
import { Pool } from "pg";
import { fromKysely } from "@countersign/store-sql/kysely";
import { openTable, poolSize, servers, type TableRow, unusedTable } from "./row.ts";

type Tables = Record<string, { id: string }>;

export const kyselyRows: readonly TableRow<Transaction<Tables>>[] = [
  kyselyRow("postgresql"),
  kyselyRow("mysql"),
];

export function kyselyRow(
  engine: "mysql" | "postgresql",
  url: string = servers[engine],
): TableRow<Transaction<Tables>> {
  return {
    name: `Kysely on ${engine}, in camel case`,
    engine,
    lacks: engine === "mysql" ? ["nesting"] : ["nesting", "script"],
    // Since 0.29.
    tellsRollback: "AbortedTransactionError" in library,
    async open() {
      const table = unusedTable();
      const kysely = new Kysely<Tables>({
        dialect: dialectOf(engine, url),
        plugins: [new CamelCasePlugin()],
      });
      return {
        ...(await openTable(fromKysely(kysely), table)),
        exec: (tx, text) => sql.raw(text).execute(tx),
        insertByHandler: (tx, id) => tx.insertInto(table).values({ id }).execute(),
        nonTransaction: kysely,
        async end() {
          await kysely.schema.dropTable(table).execute();
          await kysely.destroy();
        },
      };
    },
  };
}

function dialectOf(engine: "mysql" | "postgresql", url: string): MysqlDialect | PostgresDialect {
  if (engine === "mysql")
    return new MysqlDialect({ pool: createPool({ uri: url, connectionLimit: poolSize }) });
  const pool = new Pool({ connectionString: url, max: poolSize });
  // Kysely leaves the errors of clients that are in use to the app.
  pool.on("connect", (client) => client.on("error", () => {}));
  pool.on("error", () => {});
  return new PostgresDialect({ pool });
}
