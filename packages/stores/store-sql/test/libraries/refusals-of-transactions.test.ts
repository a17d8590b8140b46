import { describe, expect, test } from "@jest/globals";
import { drizzle as drizzleMysql } from "drizzle-orm/mysql2";
import { drizzle as drizzlePg } from "drizzle-orm/node-postgres";
import { drizzle as drizzlePostgresJs } from "drizzle-orm/postgres-js";
import { drizzle as drizzleProxy } from "drizzle-orm/pg-proxy";
import { createConnection } from "mysql2/promise";
import postgres from "postgres";
import { Client } from "pg";
import { createStores } from "@countersign/store-sql";
import { fromDrizzle } from "@countersign/store-sql/drizzle";
import { fromPostgresJs } from "@countersign/store-sql/postgres-js";
import { fromKnex } from "@countersign/store-sql/knex";
import { fromKysely } from "@countersign/store-sql/kysely";
import { drizzleOnMysql, drizzleOnPostgresql } from "./table/drizzle.ts";
import { knexRows } from "./table/knex.ts";
import { kyselyRows } from "./table/kysely.ts";
import { servers, type Opened, type TableRow } from "./table/row.ts";

describe("refuses a transaction in place of the library", () => {
  for (const row of kyselyRows) refusesTransaction(row, fromKysely);
  for (const row of knexRows) refusesTransaction(row, fromKnex);
  refusesTransaction(drizzleOnPostgresql, fromDrizzle);
  refusesTransaction(drizzleOnMysql, fromDrizzle);
});

function refusesTransaction<Tx>(row: TableRow<Tx>, from: (tx: Tx) => unknown): void {
  test(row.name, () =>
    withOpened(row, ({ database }) =>
      database.run(async (tx) => {
        expect(() => from(tx)).toThrow(TypeError);
      }),
    ),
  );
}

async function withOpened<Tx>(row: TableRow<Tx>, work: (opened: Opened<Tx>) => Promise<void>): Promise<void> {
  const opened = await row.open();
  try {
    await work(opened);
  } finally {
    await opened.end();
  }
}

test("fromDrizzle refuses other drivers, and a client that all requests would share", () => {
  const onProxy = drizzleProxy(() => Promise.reject(new Error("sent")));
  const onClient = drizzlePg(new Client({ connectionString: servers.postgresql }));
  expect(() => fromDrizzle(onProxy)).toThrow("a pool of pg or mysql2");
  expect(() => fromDrizzle(onClient)).toThrow("a pool of pg or mysql2");
});

test("fromDrizzle refuses Drizzle on postgres.js, and names the ways out", async () => {
  const sql = postgres(servers.postgresql);
  try {
    for (const db of [drizzlePostgresJs(sql), drizzlePostgresJs(servers.postgresql)]) {
      const build = (): unknown => fromDrizzle(db as never);
      expect(build).toThrow(TypeError);
      expect(build).toThrow(
        /^fromDrizzle: .*got one on postgres\.js, .*a pool of pg, .*fromPostgresJs\(sql\)$/,
      );
      expect(() =>
        createStores({ database: fromPostgresJs(db.$client), pruneIntervalMs: 0 }).close(),
      ).not.toThrow();
    }
  } finally {
    await sql.end();
  }
});

test("fromDrizzle refuses a connection of mysql2", async () => {
  const connection = await createConnection(servers.mysql);
  try {
    expect(() => fromDrizzle(drizzleMysql(connection))).toThrow("a pool of pg or mysql2");
  } finally {
    await connection.end();
  }
});
