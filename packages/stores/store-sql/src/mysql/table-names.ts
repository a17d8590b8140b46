import { OptionError } from "@countersign/core";
import { option, readOptions, type OptionRule, type OptionTable } from "@countersign/core/internal";

const defaultPrefix = "countersign";

/** Which tables of the connection's database, as the stores and the migration take it. */
export interface MysqlTables {
  /** Prefix of the tables' names. Default `countersign`. */
  readonly table?: string | undefined;
}

/** Quoted, unless said otherwise. */
export type TableNames = Readonly<ReturnType<typeof tableNames>>;

export function tableNames(prefix: string) {
  const named = (suffix: string): string => `\`${prefix}_${suffix}\``;
  const flag = prefix === defaultPrefix ? "" : ` --table ${prefix}`;
  return {
    /** As messages name the tables; not quoted. */
    place: `${prefix}_*`,
    /** What makes these tables. */
    migrate: `countersign migrate${flag}, or migrate()`,
    idempotency: named("idempotency"),
    nonces: named("nonces"),
    /** One row: the version of the tables, and the highest fence of a pruned key. */
    schema: named("schema"),
    /** Of `createAnswers`. */
    answers: named("answers"),
    lanes: named("lanes"),
    tasks: named("tasks"),
    /** Those that are paused. */
    queues: named("queues"),
    newest: named("newest"),
    /** As given. */
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
