import { type EntityManager, EntitySchema, Utils } from "@mikro-orm/core";
import { MikroORM as MysqlOrm, type EntityManager as MysqlManager } from "@mikro-orm/mysql";
import { MikroORM as PostgresOrm, type EntityManager as PostgresManager } from "@mikro-orm/postgresql";
import { fromMikroOrm } from "@countersign/store-sql/mikro-orm";
import type { Database } from "@countersign/idempotency";
import { openTable, poolSize, servers, type TableRow, unusedTable } from "./row.ts";

interface Payment {
  id: string;
}

// By Kysely, which tells a ROLLBACK, and on PostgreSQL drops the rows of several statements.
const isSeven = Utils.getORMVersion().startsWith("7.");
const byKysely = isSeven ? ({ tellsRollback: true } as const) : {};

interface Manager<Em> extends Pick<EntityManager, "create" | "flush" | "persist"> {
  transactional(work: (em: Em) => Promise<void>): Promise<unknown>;
  getTransactionContext(): unknown;
  getConnection(): {
    execute(text: string, values: unknown[], how: "all", context: unknown): Promise<unknown>;
  };
}

interface Orm<Em> {
  readonly em: Em;
  readonly database: Database<Em>;
  close(): Promise<void>;
}

type Options = ReturnType<typeof model>["options"];

export const mikroOrmOnPostgresql = rows<PostgresManager>("postgresql", async (options) => {
  const orm = await PostgresOrm.init({ ...options, clientUrl: servers.postgresql });
  return { em: orm.em, database: fromMikroOrm(orm), close: () => orm.close() };
});
export const mikroOrmOnMysql = rows<MysqlManager>("mysql", async (options) => {
  const orm = await MysqlOrm.init({ ...options, clientUrl: servers.mysql });
  return { em: orm.em, database: fromMikroOrm(orm), close: () => orm.close() };
});

function rows<Em extends Manager<Em>>(
  engine: "mysql" | "postgresql",
  open: (options: Options) => Promise<Orm<Em>>,
): readonly TableRow<Em>[] {
  return (["only persists", "flushes"] as const).map((insert) => ({
    name: `MikroORM on ${engine}, whose handler ${insert}`,
    engine,
    ...byKysely,
    lacks: isSeven && engine === "postgresql" ? ["script"] : [],
    async open() {
      const { table, entity, options } = model();
      const orm = await open(options);
      return {
        ...(await openTable(orm.database, table)),
        exec: (em, text) => em.getConnection().execute(text, [], "all", em.getTransactionContext()),
        async insertByHandler(em, id) {
          em.persist(em.create(entity, { id }));
          if (insert === "flushes") await em.flush();
        },
        nest: (em, work) => em.transactional(work),
        nonTransaction: orm.em,
        async end() {
          await orm.database.alone(`DROP TABLE ${table}`, []);
          await orm.close();
        },
      };
    },
  }));
}

function model() {
  const table = unusedTable();
  const entity = new EntitySchema<Payment>({
    name: table,
    tableName: table,
    properties: { id: { type: "string", primary: true } },
  });
  return { table, entity, options: { entities: [entity], pool: { min: 0, max: poolSize } } };
}
