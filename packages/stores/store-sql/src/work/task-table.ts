import type { Table } from "../sql/tables.ts";
import type { TaskTables } from "./dialect.ts";

/** The tables of tasks. Times are microseconds since 1970. */
export const taskTables: Readonly<Record<keyof TaskTables, Table>> = {
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
