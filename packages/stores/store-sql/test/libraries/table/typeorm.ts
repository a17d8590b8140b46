import { DataSource, type EntityManager, EntitySchema } from "typeorm";
import { fromTypeOrm } from "@countersign/store-sql/typeorm";
import { openTable, poolSize, servers, type TableRow, unusedTable } from "./row.ts";

export const typeOrmRows: readonly TableRow<EntityManager>[] = [row("postgresql"), row("mysql")];

function row(engine: "mysql" | "postgresql"): TableRow<EntityManager> {
  return {
    name: `TypeORM on ${engine}`,
    engine,
    async open() {
      const table = unusedTable();
      const Payment = new EntitySchema<{ id: string }>({
        name: table,
        columns: { id: { type: "varchar", primary: true } },
      });
      const entities = [Payment];
      const dataSource =
        engine === "postgresql"
          ? new DataSource({ type: "postgres", url: servers.postgresql, poolSize, entities })
          : new DataSource({ type: "mysql", url: servers.mysql, poolSize, entities });
      await dataSource.initialize();
      return {
        ...(await openTable(fromTypeOrm(dataSource), table)),
        exec: (manager, text) => manager.query(text),
        insertByHandler: (manager, id) => manager.insert(Payment, { id }),
        nest: (manager, work) => manager.transaction(work),
        nonTransaction: dataSource.manager,
        async end() {
          await dataSource.query(`DROP TABLE ${table}`);
          await dataSource.destroy();
        },
      };
    },
  };
}
