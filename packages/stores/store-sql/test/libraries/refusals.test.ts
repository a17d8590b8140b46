import { EntitySchema } from "@mikro-orm/core";
import { MikroORM } from "@mikro-orm/postgresql";
import { expect, test } from "@jest/globals";
import postgres from "postgres";
import { Sequelize } from "sequelize";
import { DataSource } from "typeorm";
import { fromMikroOrm } from "@countersign/store-sql/mikro-orm";
import { fromPostgresJs } from "@countersign/store-sql/postgres-js";
import { fromSequelize } from "@countersign/store-sql/sequelize";
import { fromTypeOrm } from "@countersign/store-sql/typeorm";
import { servers } from "./table/row.ts";

const url = servers.postgresql;

test("fromTypeOrm refuses the manager of a query runner without a transaction", async () => {
  const dataSource = await new DataSource({ type: "postgres", url }).initialize();
  const runner = dataSource.createQueryRunner();
  try {
    const sending = fromTypeOrm(dataSource).query(runner.manager, "SELECT 1", []);
    await expect(sending).rejects.toThrow(TypeError);
  } finally {
    await runner.release();
    await dataSource.destroy();
  }
});

test("fromTypeOrm gives mysql2 bytes in the only form that all its versions know", async () => {
  const sent: unknown[] = [];
  const logQuery = (_text: string, values?: readonly unknown[]) => sent.push(...(values ?? []));
  const ignore = () => {};
  const logger = {
    logQuery,
    logQueryError: ignore,
    logQuerySlow: ignore,
    logSchemaBuild: ignore,
    logMigration: ignore,
    log: ignore,
  };
  const dataSource = await new DataSource({ type: "mysql", url: servers.mysql, logger }).initialize();
  try {
    await fromTypeOrm(dataSource).alone("SELECT ?", [Uint8Array.of(1, 2).subarray(1)]);
    expect(sent).toStrictEqual([Buffer.of(2)]);
  } finally {
    await dataSource.destroy();
  }
});

test("fromSequelize refuses what it was not tried with", () => {
  const sequelize = Object.assign(new Sequelize(url), { getDialect: () => "mssql" });
  expect(() => fromSequelize(sequelize)).toThrow("fromSequelize: needs one of postgres, mysql, got mssql");
});

test("fromPostgresJs refuses names of columns that it cannot find the way back from", () => {
  const sql = postgres(url, { transform: { column: { from: postgres.toCamel } } });
  expect(() => fromPostgresJs(sql)).toThrow("column.to");
});

test("each handler gets its library's own transaction, and compiles with nothing else", async () => {
  const dataSource = new DataSource({ type: "postgres", url });
  const sequelize = new Sequelize(url, { logging: false });
  const sql = postgres(url);
  const entities = [
    new EntitySchema({ name: "Payment", properties: { id: { type: "string", primary: true } } }),
  ];
  const orm = await MikroORM.init({ entities, clientUrl: url });
  await dataSource.initialize();
  try {
    const typeOrm = fromTypeOrm(dataSource);
    await typeOrm.run((manager) =>
      manager.createQueryBuilder().select("1").from("pg_class", "c").getRawOne(),
    );
    // @ts-expect-error -- the data source is no manager
    await expect(typeOrm.query(dataSource, "SELECT 1", [])).rejects.toThrow(TypeError);

    const ofSequelize = fromSequelize(sequelize);
    await ofSequelize.run((transaction) => sequelize.query("SELECT 1", { transaction }));
    // @ts-expect-error -- the instance is no transaction
    await expect(ofSequelize.query(sequelize, "SELECT 1", [])).rejects.toThrow(TypeError);

    const ofPostgres = fromPostgresJs(sql);
    await ofPostgres.run(async (tx) => tx`SELECT ${tx.array([1])}::int[]`);
    // @ts-expect-error -- sql itself is no transaction
    await expect(ofPostgres.query(sql, "SELECT 1", [])).rejects.toThrow(TypeError);

    const mikroOrm = fromMikroOrm(orm);
    await mikroOrm.run(async (em) => em.createQueryBuilder("Payment").getQuery());
    // @ts-expect-error -- the instance is no manager
    await expect(mikroOrm.query(orm, "SELECT 1", [])).rejects.toThrow(TypeError);
  } finally {
    await Promise.all([dataSource.destroy(), sequelize.close(), sql.end(), orm.close()]);
  }
});
