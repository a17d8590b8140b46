import knexModule from "knex";
import { fromKnex } from "@countersign/store-sql/knex";
import { openTable, poolSize, servers, type TableRow, unusedTable } from "./row.ts";

export const knexRows: readonly TableRow<knexModule.Knex.Transaction>[] = [row("postgresql"), row("mysql")];

function row(engine: "mysql" | "postgresql"): TableRow<knexModule.Knex.Transaction> {
  return {
    name: `Knex on ${engine}, with a hook that renames columns`,
    engine,
    async open() {
      const table = unusedTable();
      const knex = knexModule.default({
        client: engine === "postgresql" ? "pg" : "mysql2",
        connection: servers[engine],
        pool: { min: 0, max: poolSize },
        log: { warn() {} },
        postProcessResponse: () => [{ renamed: true }],
      });
      return {
        ...(await openTable(fromKnex(knex), table)),
        exec: (tx, text) => tx.raw(text),
        insertByHandler: async (tx, id) => tx(table).insert({ id }),
        nest: (tx, work) => tx.transaction(work),
        nonTransaction: knex,
        async end() {
          await knex.schema.dropTable(table);
          await knex.destroy();
        },
      };
    },
  };
}
