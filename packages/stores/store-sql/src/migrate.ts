import { OptionError } from "@countersign/core";
import type { Database } from "@countersign/idempotency";
import { migrateMysql } from "./mysql/migration.ts";
import { isMysqlPool, namesMysql } from "./mysql/options.ts";
import type { MysqlTables } from "./mysql/table-names.ts";
import { isDatabase, queryableOf } from "./postgres/database-queryable.ts";
import { migratePostgres } from "./postgres/migration.ts";
import type { PostgresQueryable } from "./postgres/queryable.ts";
import type { PostgresTables } from "./postgres/table-names.ts";
import { isSqliteDatabase } from "./sqlite/options.ts";

/**
 * Creates what is missing of the tables on PostgreSQL, MySQL or MariaDB. `database` is what `fromPg(pool)` and its like have made, or a Pool
 * or Client of pg. Repeatable, and safe from several processes at once. The role needs CREATE. Leaves tables of a later release that takes
 * this one beside it, and rejects on others. Rejects with an OptionError on a bad name. SQLite needs no call: `createStores` creates its tables.
 */
export async function migrate<Tx>(
  database: Database<Tx> | PostgresQueryable,
  tables: PostgresTables | MysqlTables = {},
): Promise<void> {
  if (namesMysql(database)) return migrateMysql(database, tables);
  if (isMysqlPool(database)) refuse("must be made by fromMysql2(pool)");
  if (isSqliteDatabase(database)) refuse("is SQLite's, whose tables createStores() creates");
  if (!isDatabase(database)) return migratePostgres(database, tables);
  return migratePostgres(queryableOf(database), tables, (statements) => {
    return database.run(async (tx) => {
      // oxlint-disable-next-line no-await-in-loop -- one statement after the other
      for (const statement of statements) await database.query(tx, statement, []);
    });
  });
}

function refuse(what: string): never {
  throw new OptionError("migrate", { option: "database", what });
}
