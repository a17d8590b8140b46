import { raw, fragment } from "../sql/sql.ts";
import {
  changeOf,
  insertOf,
  insertOfTasks,
  listsOf,
  withReturning,
  type TaskDialect,
} from "../work/dialect.ts";
import { dialect as plain } from "./dialect.ts";

/** How SQLite writes the statements of tasks. It locks no rows: there is one writer at a time. `table` is the prefix of the names. */
export function taskDialect(table: string): TaskDialect {
  const dialect: TaskDialect = {
    ...plain,
    ...listsOf(plain),
    numbersAbove: (tasks, queue) =>
      fragment`coalesce((SELECT max(open.number) FROM ${raw(tasks)} AS open WHERE open.queue = ${queue} AND open.state = 'open'), 0)`,
    hex: (column) => fragment`lower(hex(${column}))`,
    found: (column) => fragment`lower(hex(${column})) AS hex`,
    // Without statistics SQLite would read all open tasks of the queue.
    byIndex: (name) => raw(name === "heads" ? `INDEXED BY "${table}_tasks_heads"` : ""),
    forUpdate: () => raw(""),
    skipLocked: raw(""),
    // One after the other: the driver keeps a statement of one row, and a call costs less than to read a list.
    upsert: (upsert) =>
      upsert.rows.map((row) => {
        const inserted = insertOf(plain, { ...upsert, rows: [row], into: `${upsert.into} AS stored` });
        return fragment`${inserted} ${withReturning.upserted(upsert, dialect)}`;
      }),
    addUnknown: (insert) =>
      insert.rows.map(
        (row) =>
          fragment`${insertOfTasks(plain, { ...insert, rows: [row] })} ${withReturning.added(dialect)}`,
      ),
    change: (change) => changeOf(change),
    changeBoth: (lanes, tasks) => [changeOf(lanes), changeOf(tasks)],
  };
  return dialect;
}
