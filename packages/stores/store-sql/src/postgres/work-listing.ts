import { damagedCursor, decodeText, keyBefore, type Row } from "@countersign/idempotency/store";
import type {
  ClaimedTask,
  QueueSummary,
  TaskPage,
  TaskQuery,
  TaskRecord,
} from "@countersign/idempotency/work";
import { entityOf, keptFailures } from "@countersign/idempotency/work/store";
import { integerOf, millisecondsOf } from "./queryable.ts";
import { wholeMilliseconds } from "./statement-parts.ts";
import { decodeKey } from "./stored-key.ts";
import type { TableNames } from "./table-names.ts";

const states = ["open", "dead", "done"] as const satisfies readonly TaskRecord["state"][];

const columns = `kept.queue, kept.id, kept.lane, kept.number, kept.state, kept.body, kept.attempts, kept.failures::text AS failures,
  ${wholeMilliseconds("kept.added_at")} AS added_ms, ${wholeMilliseconds("kept.due_at")} AS due_ms,
  ${wholeMilliseconds("kept.ended_at")} AS ended_ms`;

/** $1 queue, $2 id. */
export function readStatement({ tasks }: TableNames): string {
  return `SELECT ${columns} FROM ${tasks} AS kept WHERE kept.queue = $1 AND kept.id = $2`;
}

/** A page of queue $1 after number $2 and id $3, of $4 rows. Each state by its own part of the index. */
export function pageStatement({ tasks }: TableNames, state: TaskRecord["state"] | undefined): string {
  const pages = (state === undefined ? states : [state]).map(
    (of) => `(SELECT ${columns} FROM ${tasks} AS kept
  WHERE kept.queue = $1 AND kept.state = '${of}' AND (kept.number, kept.id) > ($2::text::bigint, $3)
  ORDER BY kept.number, kept.id LIMIT $4)`,
  );
  return `SELECT * FROM (${pages.join("\nUNION ALL ")}) AS page ORDER BY number, id LIMIT $4`;
}

/** The parameters of {@link pageStatement}: one row more than asked for tells whether another page follows. Throws on a bad cursor. */
export function pageParameters(store: string, { queue, cursor, limit }: TaskQuery): unknown[] {
  const before = keyBefore(store, cursor);
  const [, number, id] = before === "" ? ["", "0", ""] : (/^(\d{1,18}) (.+)$/s.exec(before) ?? []);
  if (number === undefined || id === undefined) throw damagedCursor(store);
  return [queue, number, id, limit + 1];
}

export function pageOf(rows: readonly Row[], limit: number): TaskPage {
  const listed = rows.slice(0, limit);
  const last = rows.length > limit ? listed.at(-1) : undefined;
  const place = last && `${String(last["number"])} ${String(last["id"])}`;
  return {
    tasks: listed.map(recordOf),
    cursor: place === undefined ? undefined : Buffer.from(place).toString("base64url"),
  };
}

export function recordOf(row: Row): TaskRecord {
  const state = states.find((known) => known === row["state"]);
  if (state === undefined) throw new Error("the table of work holds an unknown state");
  const isOpen = state === "open";
  return {
    queue: String(row["queue"]),
    id: decodeKey(String(row["id"])),
    entity: entityOf(decodeKey(String(row["lane"]))),
    state,
    body: decodeText(String(row["body"])),
    attempts: integerOf(row["attempts"]),
    failures: keptFailures(String(row["failures"])).map(({ atMs, attempt, reason }) => ({
      atMs,
      attempt,
      reason: decodeText(reason),
    })),
    addedAtMs: integerOf(row["added_ms"]),
    dueAtMs: isOpen ? integerOf(row["due_ms"]) : undefined,
    endedAtMs: isOpen ? undefined : integerOf(row["ended_ms"]),
  };
}

/** Reads an answer of the function that claims. */
export function claimedOf(answer: unknown, queue: string, token: string): ClaimedTask {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- made by our own function
  const { id, lane, body, attempt, addedAtMs } = JSON.parse(String(answer)) as {
    readonly [name in "id" | "lane" | "body"]: string;
  } & { readonly attempt: number; readonly addedAtMs: number };
  return {
    queue,
    id: decodeKey(id),
    token,
    entity: entityOf(decodeKey(lane)),
    body: decodeText(body),
    attempt,
    addedAtMs,
  };
}

export function summaryOf(row: Row): QueueSummary {
  const count = (name: string): number => integerOf(row[name] ?? 0);
  const oldest = row["oldest_seconds"] ?? undefined;
  return {
    queue: String(row["queue"]),
    paused:
      typeof row["paused_by"] !== "string"
        ? undefined
        : {
            by: decodeText(row["paused_by"]),
            note: decodeText(String(row["note"])),
            atMs: integerOf(row["paused_ms"]),
          },
    open: count("open"),
    running: count("running"),
    dead: count("dead"),
    done: count("done"),
    oldestOpenMs: oldest === undefined ? undefined : Math.max(0, millisecondsOf(oldest)),
  };
}
