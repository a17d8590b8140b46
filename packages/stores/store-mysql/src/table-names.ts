import { OptionError } from "@countersign/core";
import { option, readOptions, type OptionRule, type OptionTable } from "@countersign/core/door";

const defaultPrefix = "countersign";

/** Which tables of the connection's database, as the stores and the migration take it. */
export interface MysqlTables {
  /** Prefix of the tables' names. Default `countersign`. */
  readonly table?: string | undefined;
}

/** Quoted, unless said otherwise. */
export interface TableNames {
  /** `table_*`, as messages name the tables; not quoted. */
  readonly place: string;
  /** What makes these tables. */
  readonly migrate: string;
  readonly idempotency: string;
  readonly nonces: string;
  /** One row: the version of the tables, and the highest fence of a pruned key. */
  readonly schema: string;
  /** Of `createMysqlAnswers`. */
  readonly answers: string;
  readonly lanes: string;
  readonly tasks: string;
  /** Those that are paused. */
  readonly queues: string;
  readonly newest: string;
  /** The prefix as given. */
  readonly prefix: string;
}

export function tableNames(prefix: string): TableNames {
  const named = (suffix: string): string => `\`${prefix}_${suffix}\``;
  const flag = prefix === defaultPrefix ? "" : ` --table ${prefix}`;
  return {
    place: `${prefix}_*`,
    migrate: `countersign migrate${flag}, or migrateMysql()`,
    idempotency: named("idempotency"),
    nonces: named("nonces"),
    schema: named("schema"),
    answers: named("answers"),
    lanes: named("lanes"),
    tasks: named("tasks"),
    queues: named("queues"),
    newest: named("newest"),
    prefix,
  };
}

export const tablesTable: OptionTable<MysqlTables> = { table: prefixRule() };

/** The quoted names of the tables. Throws an OptionError. */
export function resolveTables(factoryName: string, tables: MysqlTables): TableNames {
  return tableNames(readOptions(factoryName, tablesTable, tables).table);
}

function prefixRule(): OptionRule<string> {
  return option.own((value = defaultPrefix, owner, name) => {
    if (typeof value === "string" && /^[a-z]\w{0,39}$/i.test(value)) return value;
    const what = "must be a letter and up to 39 more letters, digits and underscores";
    throw new OptionError(owner, { option: name, what });
  }, JSON.stringify(defaultPrefix));
}
