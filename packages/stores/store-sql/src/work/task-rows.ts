import { damagedCursor, decodeText, keyBefore, type Row } from "@countersign/idempotency/store";
import type { ClaimedTask, QueueSummary, TaskClaim, TaskRecord } from "@countersign/idempotency/work";
import { keptFailures, type SeenLane, type SeenTask } from "@countersign/idempotency/work/store";
import type { LaneVersion, Position } from "./task-statements.ts";
import { integerOf } from "../sql/values.ts";

/** Reads the stored text of a column. */
export type ReadText = (value: unknown) => string;

/** A lane that is due, with what a claim needs to know of its tasks. */
export interface DueLane extends LaneVersion {
  readonly dueUs: number;
  readonly seen: SeenLane;
  readonly nowUs: number;
  /** The task that is owned. */
  readonly owned: (SeenTask & { readonly task: string; readonly leasedUntilUs: number }) | undefined;
  /** The oldest open task. */
  readonly head: { readonly task: string; readonly number: number; readonly attempts: number } | undefined;
}

export function dueLane(row: Row, readText: ReadText): DueLane {
  const nowUs = integerOf(row["now_us"]);
  const [task, head] = [digestIn(row["task"]), digestIn(row["head"])];
  const leasedUntilUs = task === undefined ? undefined : integerOf(row["leased_us"]);
  return {
    lane: String(row["lane"]),
    version: integerOf(row["version"]),
    dueUs: integerOf(row["due_us"]),
    nowUs,
    seen: { leasedUntilUs, headDueUs: head === undefined ? undefined : integerOf(row["head_due_us"]) },
    owned:
      task === undefined || leasedUntilUs === undefined
        ? undefined
        : {
            task,
            leasedUntilUs,
            attempts: integerOf(row["owned_attempts"]),
            failures: readText(row["owned_failures"]),
            nowMs: milliseconds(nowUs),
          },
    head:
      head === undefined
        ? undefined
        : { task: head, number: integerOf(row["number"]), attempts: integerOf(row["attempts"]) },
  };
}

export function seenTask(row: Row, readText: ReadText): SeenTask {
  return {
    attempts: integerOf(row["attempts"]),
    failures: readText(row["failures"]),
    nowMs: milliseconds(integerOf(row["now_us"])),
  };
}

export function claimedTask(
  row: Row,
  { queue, token }: TaskClaim,
  attempt: number,
  readText: ReadText,
): ClaimedTask {
  return {
    queue,
    token,
    id: decodeText(readText(row["id"])),
    entity: entityIn(row, readText),
    body: decodeText(readText(row["body"])),
    attempt,
    addedAtMs: milliseconds(integerOf(row["added_us"])),
  };
}

export function taskRecord(row: Row, readText: ReadText): TaskRecord {
  const state = stateOf(readText(row["state"]));
  return {
    queue: readText(row["queue"]),
    id: decodeText(readText(row["id"])),
    entity: entityIn(row, readText),
    state,
    body: decodeText(readText(row["body"])),
    attempts: integerOf(row["attempts"]),
    failures: keptFailures(readText(row["failures"])),
    addedAtMs: milliseconds(integerOf(row["added_us"])),
    dueAtMs: state === "open" ? milliseconds(integerOf(row["due_us"])) : undefined,
    endedAtMs: state === "open" ? undefined : milliseconds(integerOf(row["ended_us"])),
  };
}

export function entityIn({ entity }: Row, readText: ReadText): string | undefined {
  return entity === null ? undefined : decodeText(readText(entity));
}

/** Of every queue that has tasks or is paused, by name. */
export function queueSummaries(
  counts: readonly Row[],
  pauses: readonly Row[],
  readText: ReadText,
): readonly QueueSummary[] {
  const paused = new Map(pauses.map((row) => [readText(row["queue"]), pauseOf(row, readText)]));
  const facts = new Map<string, Map<string, number>>([...paused.keys()].map((queue) => [queue, new Map()]));
  for (const row of counts) {
    const queue = readText(row["queue"]);
    const known = facts.get(queue) ?? new Map<string, number>();
    facts.set(queue, known.set(readText(row["fact"]), integerOf(row["value"])));
  }
  const queues = [...facts];
  // oxlint-disable-next-line unicorn/no-array-sort -- toSorted is newer than the library that the compiler knows
  queues.sort(([one], [other]) => (one < other ? -1 : 1));
  return queues.map(([queue, values]) => {
    const ageUs = values.get("oldest");
    return {
      queue,
      paused: paused.get(queue),
      open: values.get("open") ?? 0,
      running: values.get("running") ?? 0,
      dead: values.get("dead") ?? 0,
      done: values.get("done") ?? 0,
      oldestOpenMs: ageUs === undefined ? undefined : Math.max(0, milliseconds(ageUs)),
    };
  });
}

/** Before every row. */
export const firstPosition: Position = { at: 0, digest: "" };

/** Behind a listed row. */
export function cursorOf(row: Row): string {
  return Buffer.from(`${integerOf(row["number"])} ${String(row["hex"])}`).toString("base64url");
}

/** Where a page begins. Throws a TypeError on a damaged cursor. */
export function positionOf(store: string, cursor: string | undefined): Position {
  if (cursor === undefined) return firstPosition;
  const [, number, digest] = /^(\d{1,16}) ([0-9a-f]{64})$/.exec(keyBefore(store, cursor)) ?? [];
  if (number === undefined || digest === undefined) throw damagedCursor(store);
  return { at: Number(number), digest };
}

/** A digest in hexadecimal; of NULL an engine gives an empty text. */
function digestIn(hex: unknown): string | undefined {
  return typeof hex === "string" && hex !== "" ? hex : undefined;
}

function pauseOf(row: Row, readText: ReadText): QueueSummary["paused"] {
  return {
    by: decodeText(readText(row["paused_by"])),
    note: decodeText(readText(row["note"])),
    atMs: milliseconds(integerOf(row["paused_us"])),
  };
}

function stateOf(state: string): TaskRecord["state"] {
  if (state === "open" || state === "dead" || state === "done") return state;
  throw new Error("a task has a state that this release does not know");
}

function milliseconds(microseconds: number): number {
  return Math.floor(microseconds / 1_000);
}
