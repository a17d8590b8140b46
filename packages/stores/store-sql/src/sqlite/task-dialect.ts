import {
  changeOf,
  insertOf,
  insertOfTasks,
  listsOf,
  withReturning,
  type TaskDialect,
} from "../work/dialect.ts";
import { bound, raw, fragment, type Sql } from "../work/sql.ts";

const writers = {
  // As a text: libsql takes bytes that are the only value for named values.
  digest: (hex: string): Sql => fragment`unhex(${bound(hex)})`,
  integer: (value: number): Sql => bound(value),
  text: (value: string): Sql => bound(value),
};

/** How SQLite writes the statements of tasks. It locks no rows: there is one writer at a time. `table` is the prefix of the names. */
export function taskDialect(table: string): TaskDialect {
  const dialect: TaskDialect = {
    ...writers,
    ...listsOf(writers),
    stored: withReturning.stored,
    proposed: withReturning.proposed,
    tellsAdded: true,
    hasPartialIndexes: true,
    greatest: "max",
    numbersAbove: (tasks, queue) =>
      fragment`coalesce((SELECT max(open.number) FROM ${raw(tasks)} AS open WHERE open.queue = ${queue} AND open.state = 'open'), 0)`,
    types: {
      digest: "BLOB",
      mark: "BLOB",
      queue: "TEXT",
      text: "TEXT",
      body: "TEXT",
      state: "TEXT CHECK (state IN ('open', 'dead', 'done'))",
      count: "INTEGER",
      bigint: "INTEGER",
    },
    hex: (column) => fragment`lower(hex(${column}))`,
    found: (column) => fragment`lower(hex(${column})) AS hex`,
    readText: String,
    // Without statistics SQLite would read all open tasks of the queue.
    byIndex: (name) => raw(name === "heads" ? `INDEXED BY "${table}_tasks_heads"` : ""),
    forUpdate: () => raw(""),
    skipLocked: raw(""),
    // One after the other: the driver keeps a statement of one row, and a call costs less than to read a list.
    upsert: (upsert) =>
      upsert.rows.map((row) => {
        const inserted = insertOf(writers, { ...upsert, rows: [row], into: `${upsert.into} AS stored` });
        return fragment`${inserted} ${withReturning.upserted(upsert, dialect)}`;
      }),
    addUnknown: (insert) =>
      insert.rows.map(
        (row) =>
          fragment`${insertOfTasks(writers, { ...insert, rows: [row] })} ${withReturning.added(dialect)}`,
      ),
    change: (change) => changeOf(change),
    changeBoth: (lanes, tasks) => [changeOf(lanes), changeOf(tasks)],
  };
  return dialect;
}
