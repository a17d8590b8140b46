import { decodeText, type Row } from "@countersign/idempotency/store";
import type { TaskRecord } from "@countersign/idempotency/work";
import { keptFailures } from "@countersign/idempotency/work/store";
import { integerOf, storedText } from "./values.ts";

/** Selects what {@link taskRecord} reads. */
export const taskColumns = `queue, name, entity, state, body, attempts, failures,
  added_us DIV 1000 AS added_ms, due_us DIV 1000 AS due_ms, ended_us DIV 1000 AS ended_ms`;

export function taskRecord(row: Row): TaskRecord {
  const state = stateOf(row["state"]);
  return {
    queue: storedText(row["queue"]),
    id: textOf(row["name"]),
    entity: entityOf(row),
    state,
    body: textOf(row["body"]),
    attempts: integerOf(row["attempts"]),
    failures: keptFailures(storedText(row["failures"])),
    addedAtMs: integerOf(row["added_ms"]),
    dueAtMs: state === "open" ? integerOf(row["due_ms"]) : undefined,
    endedAtMs: state === "open" ? undefined : integerOf(row["ended_ms"]),
  };
}

function stateOf(state: unknown): TaskRecord["state"] {
  if (state === "open" || state === "dead" || state === "done") return state;
  throw new Error("a task has a state that this release does not know");
}

export function entityOf({ entity }: Row): string | undefined {
  return entity === null ? undefined : textOf(entity);
}

export function textOf(bytes: unknown): string {
  return decodeText(storedText(bytes));
}
