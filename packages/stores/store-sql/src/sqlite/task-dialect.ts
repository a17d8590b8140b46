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
    dueOrder: raw("lane.due_us, head.number, lane.digest"),
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
    upsert: (upsert) => [
      fragment`${insertOf(writers, { ...upsert, into: `${upsert.into} AS stored` })} ${withReturning.upserted(upsert, dialect)}`,
    ],
    addUnknown: (insert) => [fragment`${insertOfTasks(writers, insert)} ${withReturning.added(dialect)}`],
    change: (change) => changeOf(change),
    changeBoth: (lanes, tasks) => [changeOf(lanes), changeOf(tasks)],
  };
  return dialect;
}
