import type { Given } from "@countersign/core/internal";
import { type PostgresTables, quoteIdentifier, tableNames } from "./table-names.ts";

/** SQL that makes the tables of work, by their names. */
export function workTables(tables: Given<PostgresTables>): readonly (readonly [name: string, sql: string])[] {
  const { lanes, tasks, queues, newest } = tableNames(tables);
  const index = (suffix: string): string => quoteIdentifier(`${tables.table}_${suffix}`);
  return [
    [
      lanes,
      `-- A row for each entity, or task without one, that has open tasks: claims of its tasks lock it.
CREATE TABLE ${lanes} (
  queue text COLLATE "C" NOT NULL,
  -- e and an entity, or t and the id of a task without one
  lane text COLLATE "C" NOT NULL,
  -- when a claim looks at it: its oldest open task is due, or the lease of the owned one may have ended
  due_at timestamptz NOT NULL,
  -- the highest that a task of it was given
  last_number bigint NOT NULL,
  -- the claim that owns it, and of which task
  token text COLLATE "C",
  running text COLLATE "C",
  PRIMARY KEY (queue, lane)
)
-- Rows come and go with their tasks, and each claim writes them.
WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
CREATE INDEX ${index("lanes_due")} ON ${lanes} (queue, due_at);
`,
    ],
    [
      tasks,
      `-- A row for each task.
CREATE TABLE ${tasks} (
  queue text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  lane text COLLATE "C" NOT NULL,
  -- the order of adding, exact within a lane; of microseconds since 1970
  number bigint NOT NULL,
  state text COLLATE "C" NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'dead', 'done')),
  body text COLLATE "C" NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  failures jsonb NOT NULL DEFAULT '[]',
  added_at timestamptz NOT NULL,
  -- not before
  due_at timestamptz NOT NULL,
  -- the claim that owns it, and the end of its lease: here, since whoever adds to its lane has that one locked
  token text COLLATE "C",
  leased_until timestamptz,
  ended_at timestamptz,
  -- of a done one: until when it is remembered
  until_at timestamptz,
  PRIMARY KEY (queue, id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
CREATE INDEX ${index("tasks_waiting")} ON ${tasks} (queue, lane, number) WHERE state = 'open';
CREATE INDEX ${index("tasks_listed")} ON ${tasks} (queue, state, number, id);
CREATE INDEX ${index("tasks_until")} ON ${tasks} (until_at) WHERE state = 'done';
`,
    ],
    [
      queues,
      `-- A row for each queue that is paused.
CREATE TABLE ${queues} (
  queue text COLLATE "C" PRIMARY KEY,
  paused_at timestamptz NOT NULL,
  paused_by text COLLATE "C" NOT NULL,
  note text COLLATE "C" NOT NULL
);
`,
    ],
    [
      newest,
      `-- A row for each subject: the time of the newest event that was applied.
CREATE TABLE ${newest} (
  scope text COLLATE "C" NOT NULL,
  subject text COLLATE "C" NOT NULL,
  -- nanoseconds since 1970 plus 10^20
  at text COLLATE "C" NOT NULL,
  PRIMARY KEY (scope, subject)
);
`,
    ],
  ];
}
