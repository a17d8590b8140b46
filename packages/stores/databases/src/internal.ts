// For our own stores on databases.
export { composed, inTurn, type Chain } from "./work/chain.ts";
export {
  assigned,
  changeOf,
  insertOf,
  insertOfTasks,
  withReturning,
  listsOf,
  written,
  type Rows,
  type WriteInput,
  type TaskDialect,
  type TaskTables,
} from "./work/dialect.ts";
export { bound, joined, raw, fragment, type Sql } from "./work/sql.ts";
export type { Moment, StepWithin, TaskEngine } from "./work/task-engine.ts";
export { taskTables, type TableSql } from "./work/task-table.ts";
export { TaskStore } from "./work/tasks.ts";
