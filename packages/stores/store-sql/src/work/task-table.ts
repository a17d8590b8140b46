import type { ColumnType, TaskDialect, TaskTables } from "./dialect.ts";

/** How an engine makes tables. */
export interface TableForm {
  readonly dialect: Pick<TaskDialect, "types" | "hasReturning" | "hasPartialIndexes">;
  readonly names: TaskTables;
  /** Such as `CREATE TABLE IF NOT EXISTS`. */
  readonly create: string;
  /** Begins a statement that makes the index of this name, up to ON. Undefined where indexes are made with their table. */
  readonly createIndex: ((suffix: string) => string) | undefined;
  /** The name of a table where it stands behind ON. */
  readonly indexed: (table: keyof TaskTables) => string;
  /** Behind the columns of a table. */
  readonly options: (table: keyof TaskTables) => string;
}

/** A table with its indexes, as statements. */
export interface TableSql {
  readonly name: string;
  readonly statements: readonly string[];
}

type Column = readonly [
  name: string,
  type: ColumnType,
  constraint: "NOT NULL" | "NOT NULL PRIMARY KEY" | "",
  comment?: string,
];

interface Table {
  readonly what: string;
  readonly columns: readonly Column[];
  readonly indexes: readonly { readonly suffix: string; readonly columns: string; readonly where?: string }[];
}

const tables: Readonly<Record<keyof TaskTables, Table>> = {
  lanes: {
    what: "A row for each entity, or task without one, that has open tasks; without one until a claim removes it.",
    columns: [
      ["digest", "digest", "NOT NULL PRIMARY KEY", "SHA-256 of queue and lane"],
      ["queue", "queue", "NOT NULL"],
      ["lane", "text", "NOT NULL", "e and an entity, or t and the id of a task without one"],
      [
        "due_us",
        "bigint",
        "NOT NULL",
        "when a claim looks at it: it may be claimed, or the lease of the owned task may have ended",
      ],
      ["token", "text", "", "of the claim that owns a task of it, and the digest of that task"],
      ["task", "digest", ""],
      ["last_number", "bigint", "NOT NULL", "the highest that a task of it was given"],
      ["version", "bigint", "NOT NULL", "raised by every write, from any number"],
    ],
    indexes: [{ suffix: "due", columns: "queue, due_us" }],
  },
  tasks: {
    what: "A row for each task. Times are microseconds since 1970.",
    columns: [
      ["digest", "digest", "NOT NULL PRIMARY KEY", "SHA-256 of queue and id"],
      ["queue", "queue", "NOT NULL"],
      ["id", "text", "NOT NULL"],
      ["entity", "text", ""],
      ["lane", "digest", "NOT NULL"],
      [
        "number",
        "bigint",
        "NOT NULL",
        "the order of adding, exact within a lane; the time, or the next free number",
      ],
      ["mark", "mark", "NOT NULL", "of the call that added the task"],
      ["state", "state", "NOT NULL"],
      ["body", "body", "NOT NULL"],
      ["attempts", "count", "NOT NULL"],
      ["failures", "body", "NOT NULL", "JSON"],
      ["added_us", "bigint", "NOT NULL"],
      ["due_us", "bigint", "NOT NULL", "not before"],
      [
        "token",
        "text",
        "",
        "the claim that owns it, and the end of its lease: here, since whoever adds to its lane has that one locked",
      ],
      ["leased_us", "bigint", ""],
      ["ended_us", "bigint", "", "of a dead or done task"],
      ["until_us", "bigint", "", "of a done one: until when it is remembered"],
    ],
    indexes: [
      { suffix: "heads", columns: "lane, number", where: "state = 'open'" },
      { suffix: "states", columns: "queue, state, number, digest" },
      { suffix: "pruning", columns: "until_us", where: "until_us IS NOT NULL" },
    ],
  },
  queues: {
    what: "A row for each queue that is paused.",
    columns: [
      ["digest", "digest", "NOT NULL PRIMARY KEY", "SHA-256 of the queue"],
      ["queue", "queue", "NOT NULL"],
      ["paused_us", "bigint", "NOT NULL"],
      ["paused_by", "text", "NOT NULL"],
      ["note", "text", "NOT NULL"],
    ],
    indexes: [],
  },
  newest: {
    what: "A row for each subject: the time of the newest event that was applied.",
    columns: [
      ["digest", "digest", "NOT NULL PRIMARY KEY", "SHA-256 of scope and subject"],
      ["scope", "text", "NOT NULL"],
      ["subject", "text", "NOT NULL"],
      ["newest_at", "text", "NOT NULL", "digits that sort as the nanoseconds since 1970 do"],
    ],
    indexes: [],
  },
};

/** The definitions of the tables of tasks. */
export function taskTables(form: TableForm): readonly TableSql[] {
  return (["lanes", "tasks", "queues", "newest"] as const).map((table) => ({
    name: form.names[table],
    statements: statementsOf(table, form),
  }));
}

function statementsOf(table: keyof TaskTables, form: TableForm): readonly string[] {
  const { what, columns, indexes } = tables[table];
  const { types, hasReturning, hasPartialIndexes } = form.dialect;
  const lines = columns
    .filter(([, type]) => type !== "mark" || !hasReturning)
    .map(([name, type, constraint, comment]) => {
      const line = [name, types[type], constraint].filter((part) => part !== "").join(" ");
      return [comment, line] as const;
    });
  // An index of all rows finds those of a state by that state.
  const made = indexes.map(({ suffix, columns: of, where }) => {
    if (where === undefined || hasPartialIndexes) return { suffix, of, where };
    return { suffix, of: suffix === "heads" ? of.replace(", ", ", state, ") : of, where: undefined };
  });
  const { createIndex } = form;
  const inline =
    createIndex === undefined
      ? made.map(({ suffix, of }) => [undefined, `KEY ${suffix} (${of})`] as const)
      : [];
  const body = [...lines, ...inline]
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
