// What MikroORM cannot flush it drops, where the database numbers the rows: the next flush would find nothing to write.
import { EntitySchema, type EntityManager } from "@mikro-orm/core";
import { MikroORM as MysqlOrm } from "@mikro-orm/mysql";
import { MikroORM as PostgresOrm } from "@mikro-orm/postgresql";
import { fromMikroOrm } from "@countersign/store-sql/mikro-orm";
import type { Database } from "@countersign/idempotency";
import { expect, test } from "@jest/globals";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { openStores, payerOn } from "./table/payer.ts";
import { describeOn, servers, unusedTable } from "./table/row.ts";

interface Numbered {
  id: number;
  payee: string;
}

const columns = {
  postgresql: "id SERIAL PRIMARY KEY, payee VARCHAR(40) NOT NULL UNIQUE",
  mysql: "id INT AUTO_INCREMENT PRIMARY KEY, payee VARCHAR(40) NOT NULL UNIQUE",
} as const;

interface Options {
  readonly entities: [EntitySchema<Numbered>];
}

describeOnEach("postgresql", async (options: Options) => {
  const orm = await PostgresOrm.init({ ...options, clientUrl: servers.postgresql });
  return { database: fromMikroOrm(orm), close: () => orm.close() };
});
describeOnEach("mysql", async (options: Options) => {
  const orm = await MysqlOrm.init({ ...options, clientUrl: servers.mysql });
  return { database: fromMikroOrm(orm), close: () => orm.close() };
});

function describeOnEach<Em extends Pick<EntityManager, "create" | "persist">>(
  engine: "mysql" | "postgresql",
  open: (options: Options) => Promise<{ readonly database: Database<Em>; close(): Promise<void> }>,
): void {
  describeOn(engine)(`a payment that MikroORM cannot flush, on ${engine}`, () => {
    async function setUp() {
      const table = unusedTable();
      const entity = new EntitySchema<Numbered>({
        name: table,
        tableName: table,
        properties: {
          id: { type: "number", primary: true, autoincrement: true },
          payee: { type: "string" },
        },
      });
      const { database, close } = await open({ entities: [entity] });
      afterTest(close);
      await database.alone(`CREATE TABLE ${table} (${columns[engine]})`, []);
      afterTest(() => database.alone(`DROP TABLE ${table}`, []));
      const stores = await openStores(database);
      afterTest(() => stores.close());
      /** Only persists: the guard's own look at the rows flushes first. */
      const pay = payerOn(stores, (em, payee) => {
        em.persist(em.create(entity, (payee === "none" ? {} : { payee }) as Numbered));
      });
      return { database, table, pay };
    }

    test("since the database refuses its row is not answered as paid", async () => {
      const { database, table, pay } = await setUp();
      await database.alone(`INSERT INTO ${table} (payee) VALUES ('a')`, []);
      const refused = await pay("a");
      expect([200, "already-processed"]).not.toContain(refused);
      expect(await pay("a")).toBe(refused);
      await database.alone(`DELETE FROM ${table}`, []);
      expect(await pay("a")).toBe(200);
      expect(await database.alone(`SELECT payee FROM ${table}`, [])).toEqual([{ payee: "a" }]);
    });

    test("since MikroORM itself refuses it is not answered as paid", async () => {
      const { pay } = await setUp();
      expect([200, "already-processed"]).not.toContain(await pay("none"));
      expect([200, "already-processed"]).not.toContain(await pay("none"));
    });
  });
}
