import { hasMethods, optionError } from "@countersign/core/internal";
import type { Database } from "@countersign/idempotency";
import { migrateMysql } from "./mysql/migration.ts";
import { isMysqlDatabase } from "./mysql/options.ts";
import type { MysqlTables } from "./mysql/table-names.ts";
import { isDatabase, queryableOf } from "./postgres/database-queryable.ts";
import { migratePostgres } from "./postgres/migration.ts";
import type { PostgresQueryable } from "./postgres/queryable.ts";
import type { PostgresTables } from "./postgres/table-names.ts";

/**
 * Creates what is missing of the tables on PostgreSQL, MySQL or MariaDB. `database` is what `fromPg(pool)` and its like have made, or a Pool
 * or Client of pg. Repeatable, and safe from several processes at once. The role needs CREATE. Leaves tables of a later release that takes
 * this one beside it, and rejects on others. Rejects with an OptionError on a bad name. SQLite needs no call: `createStores` creates its tables.
 */
export async function migrate<Tx>(
  database: Database<Tx> | PostgresQueryable,
  tables: PostgresTables | MysqlTables = {},
): Promise<void> {
  if (isMysqlDatabase(database)) return migrateMysql(database, tables);
  if (isMysqlPool(database)) throw optionError("migrate", "database", "made by fromMysql2(pool)", database);
  if (!isDatabase(database)) return migratePostgres(database, tables);
  return migratePostgres(queryableOf(database), tables, (statements) => {
    return database.run(async (tx) => {
      // oxlint-disable-next-line no-await-in-loop -- one statement after the other
      for (const statement of statements) await database.query(tx, statement, []);
    });
  });
}

/** True for a pool or connection of mysql2: its server would get the statements of PostgreSQL. */
function isMysqlPool(value: unknown): boolean {
  return hasMethods(value, "query", "execute");
}
