import type { TableNames } from "./table-names.ts";

/** The definitions of the work's tables. `options` end each of them. */
export function workTables(names: TableNames, options: string): readonly string[] {
  return [lanesTable(names), tasksTable(names), queuesTable(names), newestTable(names)].map(
    (table) => `${table} ${options}`,
  );
}

function lanesTable({ lanes }: TableNames): string {
  return `CREATE TABLE IF NOT EXISTS ${lanes} (
  -- SHA-256 of the queue and of what keeps tasks in order: an entity, or a task of its own
  digest BINARY(32) PRIMARY KEY,
  queue VARBINARY(64) NOT NULL,
  -- when a claim looks at it: it may be claimed, or the lease of the claimed task may have ended
  due_us BIGINT NOT NULL,
  -- of the claim that owns it, with the task that was claimed
  token VARBINARY(3072),
  task BINARY(32),
  last_number BIGINT NOT NULL,
  KEY due (queue, due_us)
)`;
}

function tasksTable({ tasks }: TableNames): string {
  return `CREATE TABLE IF NOT EXISTS ${tasks} (
  -- SHA-256 of queue and id
  digest BINARY(32) PRIMARY KEY,
  queue VARBINARY(64) NOT NULL,
  name VARBINARY(3072) NOT NULL,
  entity VARBINARY(3072),
  lane BINARY(32) NOT NULL,
  -- order of adding, in microseconds since 1970 or the next free number
  number BIGINT NOT NULL,
  -- of the call that added the task
  mark BINARY(16) NOT NULL,
  state ENUM('open', 'dead', 'done') NOT NULL,
  body MEDIUMBLOB NOT NULL,
  attempts INT NOT NULL,
  -- JSON
  failures MEDIUMBLOB NOT NULL,
  added_us BIGINT NOT NULL,
  -- not before
  due_us BIGINT NOT NULL,
  -- of the claim that owns it, with the end of its lease: here, since whoever adds to its lane has that one locked
  token VARBINARY(3072),
  leased_us BIGINT,
  -- of a dead or done task
  ended_us BIGINT,
  -- end of what is remembered: of a done task
  until_us BIGINT,
  KEY heads (lane, state, number),
  KEY pages (queue, number, digest),
  KEY states (queue, state, number, digest),
  KEY pruning (until_us)
)`;
}

function queuesTable({ queues }: TableNames): string {
  return `CREATE TABLE IF NOT EXISTS ${queues} (
  -- paused, each of them
  queue VARBINARY(64) PRIMARY KEY,
  paused_us BIGINT NOT NULL,
  paused_by VARBINARY(768) NOT NULL,
  note VARBINARY(3072) NOT NULL
)`;
}

function newestTable({ newest }: TableNames): string {
  return `CREATE TABLE IF NOT EXISTS ${newest} (
  -- SHA-256 of scope and subject
  digest BINARY(32) PRIMARY KEY,
  scope VARBINARY(768) NOT NULL,
  subject VARBINARY(3072) NOT NULL,
  -- digits that sort as the nanoseconds since 1970 do
  newest BINARY(21) NOT NULL
)`;
}
