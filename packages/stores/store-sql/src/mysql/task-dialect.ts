import { joined, raw, fragment } from "../sql/sql.ts";
import { assigned } from "../sql/statements.ts";
import { insertOf, insertOfTasks, listsOf, type TaskDialect } from "../work/dialect.ts";
import { dialect } from "./dialect.ts";

const byKey = raw("FORCE INDEX (PRIMARY)");

/**
 * How MySQL and MariaDB write the statements of tasks. Each names its index: at REPEATABLE READ a lock on another one also locks gaps, in
 * which others insert.
 */
export const taskDialect: TaskDialect = {
  numbersAbove: () => raw("0"),
  ...dialect,
  ...listsOf(dialect),
  hex: (column) => fragment`LOWER(HEX(${column}))`,
  found: (column) => fragment`LOWER(HEX(${column})) AS hex`,
  byIndex: (name) => (name === "primary" ? byKey : raw(`FORCE INDEX (${name})`)),
  forUpdate: (key) => fragment`ORDER BY ${key} FOR UPDATE`,
  skipLocked: raw("FOR UPDATE SKIP LOCKED"),
  upsert(upsert) {
    const { into, rows, set, giving } = upsert;
    const digests = rows.map(({ digest }) => String(digest));
    return [
      fragment`${insertOf(dialect, upsert, upsert.guard)} ON DUPLICATE KEY UPDATE ${assigned(set)}`,
      fragment`SELECT ${taskDialect.found(raw("digest"))}, ${raw(giving)} FROM ${raw(into)} ${byKey}
WHERE ${taskDialect.among(raw("digest"), digests)} FOR UPDATE`,
    ];
  },
  addUnknown(insert) {
    const { into, rows, mark } = insert;
    const digests = rows.map(({ digest }) => String(digest));
    return [
      fragment`${insertOfTasks(dialect, insert)} ON DUPLICATE KEY UPDATE mark = mark`,
      fragment`SELECT ${taskDialect.found(raw("digest"))} FROM ${raw(into)} ${byKey}
WHERE ${taskDialect.among(raw("digest"), digests)} AND mark = ${mark} FOR UPDATE`,
    ];
  },
  change: ({ of, as, set, where }) =>
    fragment`UPDATE ${raw(of)} AS ${raw(as)} ${byKey} SET ${assigned(set, `${as}.`)} WHERE ${where}`,
  changeBoth: (lanes, tasks) => [
    fragment`UPDATE ${raw(tasks.of)} AS task ${byKey} STRAIGHT_JOIN ${raw(lanes.of)} AS lane ${byKey} ON lane.digest = task.lane
SET ${joined([assigned(lanes.set, "lane."), assigned(tasks.set, "task.")])} WHERE ${tasks.where}`,
  ],
};
