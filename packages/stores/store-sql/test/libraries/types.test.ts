import { execFile } from "node:child_process";
import { copyFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";
import type { MySql2Database } from "drizzle-orm/mysql2";
import type { NodePgDatabase } from "drizzle-orm/node-postgres";
import type { PostgresJsDatabase } from "drizzle-orm/postgres-js";
import type { Knex } from "knex";
import type { Kysely, Transaction } from "kysely";
import { fromDrizzle } from "@countersign/store-sql/drizzle";
import { fromKnex } from "@countersign/store-sql/knex";
import { fromKysely } from "@countersign/store-sql/kysely";
import type { Database } from "@countersign/idempotency";
import { generatePrismaClient } from "@countersign/test-support/servers/prisma-client.ts";

interface Tables {
  payments: { id: string };
}
// oxlint-disable-next-line no-unnecessary-type-parameters -- compares exactly, `any` too
type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
type TxOf<D> = D extends Database<infer Tx> ? Tx : never;
type TxOfDrizzle<D extends { transaction: (...parameters: never[]) => unknown }> =
  Parameters<D["transaction"]> extends [infer Work, ...unknown[]]
    ? Work extends (tx: infer Tx, ...more: never[]) => unknown
      ? Tx
      : never
    : never;

// Compiled, never called: the assertion is the build's.
export function handlersGetTheLibrarysOwnTransaction(
  kysely: Kysely<Tables>,
  knex: Knex,
  onPostgresql: NodePgDatabase,
  onMysql: MySql2Database,
  onPostgresJs: PostgresJsDatabase,
) {
  const databases = [
    fromKysely(kysely),
    fromKnex(knex),
    fromDrizzle(onPostgresql),
    fromDrizzle(onMysql),
  ] as const;
  const areEqual: [
    Equal<TxOf<(typeof databases)[0]>, Transaction<Tables>>,
    Equal<TxOf<(typeof databases)[1]>, Knex.Transaction>,
    Equal<TxOf<(typeof databases)[2]>, TxOfDrizzle<typeof onPostgresql>>,
    Equal<TxOf<(typeof databases)[3]>, TxOfDrizzle<typeof onMysql>>,
  ] = [true, true, true, true];

  // @ts-expect-error -- the library itself is no transaction
  const kyselyIsRefused = databases[0].query(kysely, "SELECT 1", []);
  // @ts-expect-error -- the library itself is no transaction
  const knexIsRefused = databases[1].query(knex, "SELECT 1", []);
  // @ts-expect-error -- the library itself is no transaction
  const drizzleIsRefused = databases[2].query(onPostgresql, "SELECT 1", []);
  // @ts-expect-error -- the library itself is no transaction
  const drizzleOnMysqlIsRefused = databases[3].query(onMysql, "SELECT 1", []);

  // @ts-expect-error -- another library
  fromKysely(knex);
  // @ts-expect-error -- another library
  fromKnex(kysely);
  // @ts-expect-error -- another library
  fromDrizzle(knex);
  // @ts-expect-error -- postgres.js rolls back after any failed statement
  fromDrizzle(onPostgresJs);
  return [areEqual, kyselyIsRefused, knexIsRefused, drizzleIsRefused, drizzleOnMysqlIsRefused];
}

const require = createRequire(import.meta.url);

test("fromPrisma gives handlers the generated client's own transaction", async () => {
  const generated = await generatePrismaClient(
    fileURLToPath(new URL("prisma/schema.prisma", import.meta.url)),
  );
  try {
    const source = new URL("prisma/types.txt", import.meta.url);
    await copyFile(source, path.join(generated.folder, "types.ts"));
    const base = fileURLToPath(new URL("../../../../../tsconfig.test.json", import.meta.url));
    const compilerOptions = { incremental: false, tsBuildInfoFile: null };
    const project = { extends: base, compilerOptions, files: ["types.ts"], include: [] };
    await writeFile(path.join(generated.folder, "tsconfig.json"), JSON.stringify(project));
    const typescript = path.dirname(require.resolve("typescript/package.json"));
    const output = await promisify(execFile)(process.execPath, [
      path.join(typescript, "bin/tsc"),
      "--project",
      generated.folder,
    ]).catch((error: unknown) => Reflect.get(Object(error), "stdout"));
    expect(output).toEqual({ stdout: "", stderr: expect.any(String) });
  } finally {
    await generated.remove();
  }
});
