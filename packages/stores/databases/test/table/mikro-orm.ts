import { EntitySchema, Utils } from "@mikro-orm/core";
import { MikroORM as MysqlOrm, type EntityManager as MysqlManager } from "@mikro-orm/mysql";
import { MikroORM as PostgresOrm, type EntityManager as PostgresManager } from "@mikro-orm/postgresql";
import { fromMikroOrm } from "@countersign/databases";
import { openTable, poolSize, servers, type TableRow, unusedTable } from "./row.ts";

interface Payment {
  id: string;
}

// By Kysely, which tells a ROLLBACK, and on PostgreSQL drops the rows of several statements.
const isSeven = Utils.getORMVersion().startsWith("7.");
const byKysely = isSeven ? ({ tellsRollback: true } as const) : {};

type Insert = "flushes" | "only persists";

export const mikroOrmOnPostgresql: readonly TableRow<PostgresManager>[] = [
  onPostgresql("only persists"),
  onPostgresql("flushes"),
];
export const mikroOrmOnMysql: readonly TableRow<MysqlManager>[] = [
  onMysql("only persists"),
  onMysql("flushes"),
];

function onPostgresql(insert: Insert): TableRow<PostgresManager> {
  return {
    name: `MikroORM on postgresql, whose handler ${insert}`,
    engine: "postgresql",
    ...byKysely,
    lacks: isSeven ? ["script"] : [],
    async open() {
      const { table, entity, options } = model();
      const orm = await PostgresOrm.init({ ...options, clientUrl: servers.postgresql });
      return {
        ...(await openTable(fromMikroOrm(orm), table)),
        async insertByHandler(em, id) {
          em.persist(em.create(entity, { id }));
          if (insert === "flushes") await em.flush();
        },
        nest: (em, work) => em.transactional(work),
        nonTransaction: orm.em,
        async end() {
          await orm.em.getConnection().execute(`DROP TABLE ${table}`);
          await orm.close();
        },
      };
    },
  };
}

function onMysql(insert: Insert): TableRow<MysqlManager> {
  return {
    name: `MikroORM on mysql, whose handler ${insert}`,
    engine: "mysql",
    ...byKysely,
    async open() {
      const { table, entity, options } = model();
      const orm = await MysqlOrm.init({ ...options, clientUrl: servers.mysql });
      return {
        ...(await openTable(fromMikroOrm(orm), table)),
        async insertByHandler(em, id) {
          em.persist(em.create(entity, { id }));
          if (insert === "flushes") await em.flush();
        },
        nest: (em, work) => em.transactional(work),
        nonTransaction: orm.em,
        async end() {
          await orm.em.getConnection().execute(`DROP TABLE ${table}`);
          await orm.close();
        },
      };
    },
  };
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
