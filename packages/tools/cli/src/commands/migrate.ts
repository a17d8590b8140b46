import { Command } from "commander";
import { UsageError, type CommandIo, type Switches } from "../command-io.ts";
import { failingInOneLine, loadEngine } from "../operator/operator-store.ts";
import {
  addNameOptions,
  readTarget,
  readUrlTarget,
  storeUrlOption,
  type StoreFlags,
} from "../operator/store-target.ts";
import { jsonLine } from "../output.ts";

type MigrateFlags = Pick<StoreFlags, "storeUrl" | "schema" | "table"> & Switches<"print" | "json">;

const notes = `
Safe to repeat, and to start on several machines at once. On PostgreSQL one at a
time works, in one transaction, and a schema that is missing is created. On
MariaDB each statement commits by itself. The output says whether the tables
were created: check the names then. SQLite needs none, the store creates its
tables when a platform opens the file; Redis has no tables.

Examples:
  STORE_URL=postgres://… countersign migrate
  countersign migrate --print > stores.sql
  psql --single-transaction --file stores.sql

Exit codes:
  0  the tables are there   1  refused by the server   2  usage
  3  server not reached
`;

export function migrateCommand(io: CommandIo): Command {
  const command = new Command("migrate")
    .description("create the tables of the stores on PostgreSQL or MariaDB")
    .addOption(storeUrlOption());
  return addNameOptions(command)
    .option("--print", "print the SQL and do nothing; PostgreSQL's without --store-url")
    .option("--json", "print one JSON document")
    .addHelpText("after", notes)
    .action(async (flags: MigrateFlags) => {
      if (flags.print !== true) {
        io.writeOut(await migrateStore(flags));
        return;
      }
      const sql = await sqlOf(flags);
      io.writeOut(flags.json === true ? jsonLine({ sql }) : sql);
    });
}

async function sqlOf({ storeUrl, schema, table }: MigrateFlags): Promise<string> {
  const engine =
    storeUrl === undefined ? "postgres" : readTarget({ storeUrl, schema, table }).location.engine;
  const { tables } = engine === "redis" ? {} : await loadEngine(engine);
  if (tables === undefined) throw new UsageError("--print: Redis has no tables");
  return tables({ schema, table });
}

async function migrateStore({ storeUrl, schema, table, json }: MigrateFlags): Promise<string> {
  const target = readUrlTarget({ storeUrl, schema, table });
  const { engine, shown } = target.location;
  const { migrate } = engine === "postgres" || engine === "mysql" ? await loadEngine(engine) : {};
  if (migrate === undefined) {
    const why =
      engine === "redis"
        ? "Redis has no tables"
        : "the store creates its tables when a platform opens the file";
    return json === true ? jsonLine({ engine }) : `${shown}: nothing to migrate; ${why}\n`;
  }
  const { before, version, created } = await failingInOneLine(target, () => migrate(target));
  const isRepaired = before !== null && created.length > 0;
  if (json === true) return jsonLine({ engine, version, before, ...(isRepaired && { created }) });
  // A typo in a name shows up as tables that are created.
  const all = before === null ? "created the tables" : "nothing to do, the tables were there";
  const what = isRepaired ? `created what was missing: ${created.join(", ")}` : all;
  return `${target.shown}: ${what}; schema version ${version}\n`;
}
