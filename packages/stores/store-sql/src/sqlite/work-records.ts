import { cursorBehind, damagedCursor, decodeText, keyBefore } from "@countersign/idempotency/store";
import type { QueueSummary, TaskPage, TaskRecord } from "@countersign/idempotency/work";
import { entityOf, keptFailures } from "@countersign/idempotency/work/store";
import { type SqliteRow, integerOf, singleRow } from "./connection.ts";

/** A task as its row has it. Lane is stored text. */
export interface StoredTask {
  readonly number: number;
  readonly lane: string;
  readonly attempts: number;
  readonly failures: string;
  readonly row: SqliteRow;
}

export function storedTask(found: unknown): StoredTask {
  const row = singleRow(found);
  return {
    number: integerOf(row["number"]),
    lane: String(row["lane"]),
    attempts: integerOf(row["attempts"]),
    failures: String(row["failures"]),
    row,
  };
}

export function taskRecord({ lane, attempts, failures, row }: StoredTask): TaskRecord {
  const state = stateOf(row["state"]);
  return {
    queue: String(row["queue"]),
    id: decodeText(String(row["id"])),
    entity: entityOf(decodeText(lane)),
    state,
    body: decodeText(String(row["body"])),
    attempts,
    failures: keptFailures(failures),
    addedAtMs: integerOf(row["added_at"]),
    dueAtMs: state === "open" ? integerOf(row["due_at"]) : undefined,
    endedAtMs: state === "open" ? undefined : integerOf(row["ended_at"]),
  };
}

function stateOf(state: unknown): TaskRecord["state"] {
  if (state === "open" || state === "dead" || state === "done") return state;
  throw new Error(`the table of tasks has a row of unknown state: ${String(state)}`);
}

/** The number behind which a page begins. Throws a TypeError on a damaged cursor. */
export function numberBefore(store: string, cursor: string | undefined): number {
  const text = keyBefore(store, cursor);
  if (text === "") return 0;
  if (!/^[1-9][0-9]{0,15}$/.test(text)) throw damagedCursor(store);
  return Number(text);
}

/** A row beyond `limit` means another page. */
export function taskPage(rows: readonly unknown[], limit: number): TaskPage {
  const tasks = rows.slice(0, limit).map(storedTask);
  const last = tasks.at(-1);
  return {
    tasks: tasks.map(taskRecord),
    cursor: last === undefined || rows.length <= limit ? undefined : cursorBehind(String(last.number)),
  };
}

export function queueSummary(found: unknown, nowMs: number): QueueSummary {
  const row = singleRow(found);
  const count = (column: string) => integerOf(row[column]);
  return {
    queue: String(row["queue"]),
    paused:
      row["paused_at"] === null
        ? undefined
        : {
            atMs: count("paused_at"),
            by: decodeText(String(row["paused_by"])),
            note: decodeText(String(row["note"])),
          },
    open: count("open"),
    running: count("running"),
    dead: count("dead"),
    done: count("done"),
    oldestOpenMs: row["oldest"] === null ? undefined : Math.max(0, nowMs - count("oldest")),
  };
}
