import type { NewTask } from "@countersign/idempotency/work";
import { laneOf } from "@countersign/idempotency/work/store";
import type { TableNames } from "./table-names.ts";
import { isInTransaction, microseconds, type Statement, zeroIfOpen } from "./statement-parts.ts";
import { bytesOf, digestOf, hexOf } from "./values.ts";

export interface Moment {
  readonly names: TableNames;
  readonly now: string;
}

interface LanesWanted {
  readonly queue: string;
  readonly digests: readonly Buffer[];
  /** How many numbers above the lane's last one are taken; `last_number` is the highest of them. */
  readonly numbers: number;
  /** What happens to the due time of a lane that exists; by default it stays. */
  readonly due?: string | undefined;
}

/**
 * Locks the lanes, and makes those that are missing, due: a claim moves one whose head is not. Sorted, so that two calls never wait for each
 * other. Then gives `digest`, `last_number` and `is_open`, whether this is in a transaction. Where it is in none the first one fails.
 */
export function lanesStatements(
  { names, now }: Moment,
  { queue, digests, numbers, due = "due_us" }: LanesWanted,
): readonly Statement[] {
  const lanes = inOrder([...new Map(digests.map((digest) => [hexOf(digest), { digest }])).values()]);
  const add = `INSERT INTO ${names.lanes} (digest, queue, due_us, last_number)
VALUES ${lanes.map(() => `(?, ?, ${now}, ${now} + ${numbers} + ${zeroIfOpen})`).join(", ")}
ON DUPLICATE KEY UPDATE last_number = GREATEST(last_number + ${numbers}, ${now} + ${numbers}), due_us = ${due}`;
  const look = `SELECT digest, last_number, ${isInTransaction} AS is_open FROM ${names.lanes} FORCE INDEX (PRIMARY)
WHERE digest IN (${lanes.map(() => "?").join(", ")}) FOR UPDATE`;
  return [
    [add, lanes.flatMap(({ digest }) => [digest, queue])],
    [look, lanes.map(({ digest }) => digest)],
  ];
}

export function laneDigest(queue: string, task: Pick<NewTask, "id" | "entity">): Buffer {
  return digestOf(queue, laneOf(task));
}

interface NumberedTask extends NewTask {
  readonly lane: Buffer;
  readonly number: number;
}

interface TasksWanted {
  readonly queue: string;
  readonly tasks: readonly NumberedTask[];
  /** Of this call alone: it tells what the call added from what was there. */
  readonly mark: Buffer;
}

/** Adds the tasks whose ids are unknown. Then gives `digest`, `is_new`, and the stored `body`. Sorted, as the lanes are. */
export function tasksStatements(
  { names, now }: Moment,
  { queue, tasks, mark }: TasksWanted,
): readonly Statement[] {
  const rows = inOrder(tasks.map((task) => ({ ...task, digest: digestOf(queue, task.id) })));
  const row = `(?, ?, ?, ?, ?, ?, ?, 'open', ?, 0, '[]', ${now}, ${now} + ${microseconds("?")})`;
  const add = `INSERT INTO ${names.tasks}
  (digest, queue, name, entity, lane, number, mark, state, body, attempts, failures, added_us, due_us)
VALUES ${rows.map(() => row).join(",\n  ")}
ON DUPLICATE KEY UPDATE mark = mark`;
  const look = `SELECT digest, mark = ? AS is_new, body FROM ${names.tasks} FORCE INDEX (PRIMARY)
WHERE digest IN (${rows.map(() => "?").join(", ")}) FOR UPDATE`;
  const values = rows.flatMap(({ digest, id, entity, lane, number, body, delayMs = 0 }) => [
    digest,
    queue,
    bytesOf(id),
    entity === undefined ? null : bytesOf(entity),
    lane,
    number,
    mark,
    bytesOf(body),
    delayMs,
  ]);
  return [
    [add, values],
    [look, [mark, ...rows.map(({ digest }) => digest)]],
  ];
}

function inOrder<T extends { readonly digest: Buffer }>(rows: T[]): readonly T[] {
  // oxlint-disable-next-line unicorn/no-array-sort -- toSorted is newer than the library that the compiler knows
  return rows.sort((a, b) => Buffer.compare(a.digest, b.digest));
}
