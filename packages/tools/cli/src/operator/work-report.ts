import type { QueueSummary, TaskRecord, WorkDecision } from "@countersign/idempotency/work";
import type { CommandIo } from "../command-io.ts";
import { bodyLines, createPaint, jsonLine, printable, printableLine } from "../output.ts";
import { tableText } from "../table.ts";
import { duration, factLines, timeAgo, type Fact } from "./key-report.ts";
import { shownKey } from "./key-text.ts";

export function isAlarming({ dead, paused }: QueueSummary): boolean {
  return dead > 0 || paused !== undefined;
}

export function lateText(queue: string, lateMs: number): string {
  return `a task was added to the queue ${queue} ${duration(lateMs)} ago, and is not done`;
}

const counts = ["open", "running", "dead", "done"] as const;

export function queuesTable(summaries: readonly QueueSummary[], { colours, columns, clock }: CommandIo) {
  const paint = createPaint(colours);
  const rows = summaries.map((summary) => [
    summary.queue,
    ...counts.map((name) => String(summary[name])),
    summary.oldestOpenMs === undefined ? "" : duration(summary.oldestOpenMs),
    summary.paused === undefined
      ? ""
      : `paused ${decisionText(summary.paused)}, ${ago(summary.paused.atMs, clock)}`,
  ]);
  return tableText(["queue", ...counts, "oldest", "state"], rows, {
    whole: 1,
    columns,
    paint(line, at = -1) {
      const summary = summaries[at];
      if (summary === undefined) return paint("bold", line);
      return isAlarming(summary) ? paint(summary.dead > 0 ? "red" : "yellow", line) : line;
    },
  });
}

export function summaryJson({ paused, oldestOpenMs, ...summary }: QueueSummary): string {
  return jsonLine({
    ...summary,
    oldestOpenMs: oldestOpenMs ?? null,
    paused: paused === undefined ? null : { by: paused.by, note: paused.note, at: isoTime(paused.atMs) },
  });
}

export function tasksTable(tasks: readonly TaskRecord[], { colours, columns, clock }: CommandIo): string {
  const paint = createPaint(colours);
  const rows = tasks.map((task) => [
    shownKey(task.id),
    task.state,
    String(task.attempts),
    ago(task.addedAtMs, clock),
    explainTask(task, clock),
  ]);
  return tableText(["task", "state", "attempts", "added", "what is known"], rows, {
    whole: 2,
    columns,
    paint(line, at = -1) {
      const task = tasks[at];
      if (task === undefined) return paint("bold", line);
      if (task.state === "open") return line;
      return paint(task.state === "dead" ? "red" : "green", line);
    },
  });
}

export function taskJson({ failures, addedAtMs, dueAtMs, endedAtMs, entity, ...task }: TaskRecord): string {
  return jsonLine({
    ...task,
    entity: entity ?? null,
    addedAt: isoTime(addedAtMs),
    dueAt: dueAtMs === undefined ? null : isoTime(dueAtMs),
    endedAt: endedAtMs === undefined ? null : isoTime(endedAtMs),
    failures: failures.map(({ atMs, ...failure }) => ({ at: isoTime(atMs), ...failure })),
  });
}

export function taskText(task: TaskRecord, store: string, io: CommandIo): string {
  const nowMs = io.clock() * 1000;
  const facts: readonly Fact[] = [
    ["store", store],
    ["queue", task.queue],
    ["task", shownKey(task.id)],
    ...(task.entity === undefined ? [] : [["entity", shownKey(task.entity)] as const]),
    ["state", `${task.state}: ${explainTask(task, io.clock)}`],
    ["added", timeAgo(task.addedAtMs, nowMs)],
    ["attempts", String(task.attempts)],
    ...historyOf(task, nowMs),
  ];
  return `${factLines(facts)}body\n${bodyLines(task.body).join("\n")}\n`;
}

/** What failed, whether it was let run again, and when it ended. */
function historyOf({ failures, attempts, state, endedAtMs }: TaskRecord, nowMs: number): readonly Fact[] {
  const facts = failures.flatMap(({ attempt, atMs, reason }, at): Fact[] => {
    const next = failures[at + 1] ?? { attempt: attempts, reason };
    // A retry begins to count anew. The store keeps neither its time nor a name.
    const isLast = at === failures.length - 1 && state !== "done";
    const isAnew = next.attempt < attempt || (next.attempt === attempt && !isLast);
    const isRetried = isAnew && !isDiscard(reason) && !isDiscard(next.reason);
    return [
      [`attempt ${attempt}`, `${timeAgo(atMs, nowMs)}: ${printableLine(reason)}`],
      ...(isRetried ? [["retried", "after that, with all attempts; by whom is not kept"] as const] : []),
    ];
  });
  if (endedAtMs === undefined) return facts;
  return [...facts, [state === "dead" ? "given up" : "done", timeAgo(endedAtMs, nowMs)]];
}

function isDiscard(reason: string): boolean {
  return reason.startsWith("discarded by ");
}

function explainTask({ state, failures, dueAtMs = 0, endedAtMs = 0 }: TaskRecord, clock: CommandIo["clock"]) {
  const last = failures.at(-1)?.reason;
  const why = last === undefined ? "" : `; ${printableLine(last)}`;
  if (state !== "open") {
    // A done task shows why it failed before only in full.
    const isTold = state === "dead" || (last !== undefined && isDiscard(last));
    return `${state === "dead" ? "given up" : "ended"} ${ago(endedAtMs, clock)}${isTold ? why : ""}`;
  }
  const waitMs = dueAtMs - clock() * 1000;
  return `${waitMs > 0 ? `due in ${duration(waitMs)}` : "due, or running"}${why}`;
}

export function decisionText({ by, note }: WorkDecision): string {
  return `by ${printableLine(by)}, note ${printable(JSON.stringify(note))}`;
}

export function countOf(tasks: number, what: string = ""): string {
  return `${tasks} ${what}${tasks === 1 ? "task" : "tasks"}`;
}

function ago(ms: number, clock: CommandIo["clock"]): string {
  const passedMs = clock() * 1000 - ms;
  return passedMs < 2000 ? "just now" : `${duration(passedMs)} ago`;
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
