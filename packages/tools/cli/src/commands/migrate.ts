import { Command } from "commander";
import { exitCodes, UsageError, type CommandIo, type ExitCode } from "../command-io.ts";
import { jsonLine } from "../json-output.ts";
import { loadPostgres, loadSqlite } from "../operator/load-engine.ts";
import { failingInOneLine } from "../operator/operator-store.ts";
import type { Migration } from "../operator/postgres-store.ts";
import type { ServerLocation, StoreLocation } from "../operator/store-location.ts";
import { addNameOptions, readTarget, storeUrlOption, type StoreTarget } from "../operator/store-options.ts";
import { printable } from "../printable.ts";

interface MigrateFlags {
  readonly storeUrl?: string | undefined;
  readonly schema?: string | undefined;
  readonly table?: string | undefined;
  readonly print?: boolean | undefined;
  readonly json?: boolean | undefined;
}

const notes = `
Safe to repeat, and to start on several machines at once: one at a time works,
in one transaction. A schema that is missing is created; the output says whether
the schema and the tables were there, and which version they had. Processes of
the release before may fail on tables that are up to date: start the new ones
next. SQLite needs none, the store creates its tables when a platform opens the
file; Redis has no tables.

Examples:
  STORE_URL=postgres://… countersign migrate
  countersign migrate --print > stores.sql
  psql --single-transaction --file stores.sql

Exit codes:
  0  up to date, nothing to do   1  refused by the server   2  usage
  3  server not reached
`;

/** `countersign migrate`: the tables of the stores on PostgreSQL. */
export function migrateCommand(io: CommandIo, finish: (code: ExitCode) => void): Command {
  const command = new Command("migrate")
    .description("create the tables of the stores on PostgreSQL, or bring them up to date")
    .addOption(storeUrlOption());
  return addNameOptions(command)
    .option("--print", "print the SQL and do nothing; PostgreSQL's without --store-url")
    .option("--json", "print one JSON document")
    .addHelpText("after", notes)
    .action(async (flags: MigrateFlags) => {
      if (flags.print !== true) io.writeOut(await migrateStore(flags));
      else if (flags.json === true) io.writeOut(jsonLine({ sql: await sqlOf(flags) }));
      else io.writeOut(await sqlOf(flags));
      finish(exitCodes.asExpected);
    });
}

async function sqlOf({ storeUrl, schema, table }: MigrateFlags): Promise<string> {
  const engine =
    storeUrl === undefined ? "postgres" : readTarget({ storeUrl, schema, table }).location.engine;
  if (engine === "redis") throw new UsageError("--print: Redis has no tables");
  if (engine === "sqlite") return (await loadSqlite()).sqliteTables(table);
  return (await loadPostgres()).postgresTables({ schema, table });
}

async function migrateStore({ storeUrl, schema, table, json }: MigrateFlags): Promise<string> {
  if (storeUrl === undefined) throw new UsageError("required option '--store-url <url>' not specified");
  const target = readTarget({ storeUrl, schema, table });
  const { location } = target;
  const migration = location.engine === "postgres" ? await migratePostgres(location, target) : undefined;
  if (json === true) return jsonLine({ engine: location.engine, ...migration });
  if (migration === undefined) return `${location.shown}: ${nothingToDo(location.engine)}\n`;
  return `${target.shown}: ${creation(migration, schema)}; schema version ${migration.version}\n`;
}

async function migratePostgres(location: ServerLocation, target: StoreTarget): Promise<Migration> {
  const { migrateTables } = await loadPostgres();
  const { schema, table } = target;
  return await failingInOneLine(target, () => migrateTables(location, { schema, table }));
}

// So that a typo in a name is seen.
function creation({ created, updatedFrom }: Migration, schema = "public"): string {
  const place = `schema ${printable(schema)}`;
  if (updatedFrom !== undefined) return `brought the tables up to date from schema version ${updatedFrom}`;
  if (created === "nothing") return "nothing created, the tables were there";
  return created === "tables"
    ? `created the tables in ${place}, which was there`
    : `created ${place}, which was not there, and the tables in it`;
}

function nothingToDo(engine: StoreLocation["engine"]): string {
  return engine === "redis"
    ? "nothing to migrate; Redis has no tables"
    : "nothing to migrate; the store creates its tables when a platform opens the file";
}
