import { OptionError } from "@countersign/core";
import {
  option,
  readOptions,
  type Given,
  type OptionRule,
  type OptionTable,
} from "@countersign/core/internal";

const defaultName = "countersign";

/** Where the tables are, as `createStores`, `migrate()` and `postgresMigration` take it. */
export interface PostgresTables {
  /** Schema of the tables. Default `countersign`. */
  readonly schema?: string | undefined;
  /** Prefix of the tables' names. Default `countersign`. */
  readonly table?: string | undefined;
}

export type TableNames = Readonly<ReturnType<typeof tableNames>>;

/** Every name is qualified, so that no search_path and no temporary table can put another one in its place. */
export function tableNames({ schema, table }: Given<PostgresTables>) {
  const qualified = (suffix: string): string =>
    `${quoteIdentifier(schema)}.${quoteIdentifier(table + suffix)}`;
  return {
    /** As messages name the tables. */
    place: `${schema}.${table}_*`,
    /** The command that makes these tables. */
    migrate: `countersign migrate${flag("schema", schema)}${flag("table", table)}`,
    schema: quoteIdentifier(schema),
    idempotency: qualified("_idempotency"),
    nonces: qualified("_nonces"),
    lanes: qualified("_lanes"),
    tasks: qualified("_tasks"),
    queues: qualified("_queues"),
    newest: qualified("_newest"),
    /** Of `createAnswers`. */
    answers: qualified("_answers"),
    version: qualified("_schema"),
  };
}

// Without the flag, the command would make other tables, which are empty, and which an operator could take for the platform's.
function flag(name: keyof PostgresTables, value: string): string {
  if (value === defaultName) return "";
  return ` --${name} ${/^\w+$/.test(value) ? value : `'${value.replaceAll("'", String.raw`'\''`)}'`}`;
}

/** In double quotes; for names that {@link resolveTables} has passed. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** In single quotes; for text without backslashes, which old settings of the server read as escapes. */
export function quoteLiteral(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

// PostgreSQL cuts longer names silently, and two prefixes would share one table. The longest suffix is `_idempotency_until`.
const longestName = 63;
const longestPrefix = 40;

// A backslash or a dollar sign could end a literal; a question mark is a place for a value, to the stores and to some libraries; a lone surrogate
// is sent as another letter; no name needs a control character.
const unsafeInName = /[\\$?\p{Cc}\p{Surrogate}]/u;

export const tablesTable: OptionTable<PostgresTables> = {
  schema: nameRule(longestName),
  table: nameRule(longestPrefix),
};

/** The tables' schema and prefix, checked. Throws an OptionError. */
export function resolveTables(factoryName: string, tables: PostgresTables): Given<PostgresTables> {
  return readOptions(factoryName, tablesTable, tables);
}

function nameRule(longest: number): OptionRule<string> {
  return option.own((value = defaultName, owner, name) => {
    if (
      typeof value === "string" &&
      value !== "" &&
      Buffer.byteLength(value) <= longest &&
      !unsafeInName.test(value)
    ) {
      return value;
    }
    const what = `must be 1 to ${longest} bytes of UTF-8 without backslashes, dollar signs, question marks and control characters`;
    throw new OptionError(owner, { option: name, what });
  }, JSON.stringify(defaultName));
}
