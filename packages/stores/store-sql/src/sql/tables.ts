/** What a column holds. `text` is as encodeText() has it, so that every engine gives it back as it was. */
export type ColumnType =
  | "digest"
  | "mark"
  | "queue"
  | "text"
  | "body"
  | "state"
  | "count"
  | "bigint"
  | "keyState"
  | "recovery"
  | "instant"
  | "bytes";

export type Column = readonly [
  name: string,
  type: ColumnType,
  constraint: "NOT NULL" | "NOT NULL PRIMARY KEY" | "",
  comment?: string,
];

export interface Table {
  readonly what: string;
  readonly columns: readonly Column[];
  /** A primary key of several columns. */
  readonly key?: string | undefined;
  readonly indexes: readonly { readonly suffix: string; readonly columns: string; readonly where?: string }[];
}

/** How an engine makes tables. */
export interface TableForm<Name extends string = string> {
  readonly dialect: {
    readonly types: Readonly<Record<ColumnType, string>>;
    readonly hasReturning: boolean;
    readonly hasPartialIndexes: boolean;
  };
  readonly names: Readonly<Record<Name, string>>;
  /** Such as `CREATE TABLE IF NOT EXISTS`. */
  readonly create: string;
  /** Begins a statement that makes the index of this name, up to ON. Undefined where indexes are made with their table. */
  readonly createIndex: ((suffix: string) => string) | undefined;
  /** The name of a table where it stands behind ON. */
  readonly indexed: (table: Name) => string;
  /** Behind the columns of a table. */
  readonly options: (table: Name) => string;
}

/** A table with its indexes, as statements. */
export interface TableSql {
  readonly name: string;
  readonly statements: readonly string[];
}

/** The statements that make these tables. */
export function tablesSql<Name extends string>(
  tables: Readonly<Record<Name, Table>>,
  form: TableForm<Name>,
): readonly TableSql[] {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the names of the record
  return (Object.keys(tables) as Name[]).map((name) => ({
    name: form.names[name],
    statements: statementsOf(name, tables[name], form),
  }));
}

function statementsOf<Name extends string>(
  table: Name,
  { what, columns, key, indexes }: Table,
  form: TableForm<Name>,
): readonly string[] {
  const { types, hasReturning, hasPartialIndexes } = form.dialect;
  const lines = columns
    .filter(([, type]) => type !== "mark" || !hasReturning)
    .map(([name, type, constraint, comment]) => {
      const line = [name, types[type], constraint].filter((part) => part !== "").join(" ");
      return [comment, line] as const;
    });
  const keys = key === undefined ? [] : [[undefined, `PRIMARY KEY (${key})`] as const];
  // An index of all rows finds those of a state by that state.
  const made = indexes.map(({ suffix, columns: of, where }) => {
    if (where === undefined || hasPartialIndexes) return { suffix, of, where };
    return { suffix, of: byState(of, where), where: undefined };
  });
  const { createIndex } = form;
  const inline =
    createIndex === undefined
      ? made.map(({ suffix, of }) => [undefined, `KEY ${suffix} (${of})`] as const)
      : [];
  const body = [...lines, ...keys, ...inline]
    .map(([comment, line], index, all) => {
      const end = index === all.length - 1 ? "" : ",";
      return `${comment === undefined ? "" : `  -- ${comment}\n`}  ${line}${end}`;
    })
    .join("\n");
  return [
    `-- ${what}\n${form.create} ${form.names[table]} (\n${body}\n)${form.options(table)}`,
    ...(createIndex === undefined
      ? []
      : made.map(
          ({ suffix, of, where }) =>
            `${createIndex(`${table}_${suffix}`)} ON ${form.indexed(table)} (${of})${where === undefined ? "" : ` WHERE ${where}`}`,
        )),
  ];
}

function byState(columns: string, where: string): string {
  if (!where.startsWith("state ") || columns.startsWith("state,")) return columns;
  const [first, ...others] = columns.split(", ");
  return others.length === 0 ? `state, ${columns}` : [first, "state", ...others].join(", ");
}
