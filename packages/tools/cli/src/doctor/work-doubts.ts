import type { QueueSummary } from "@countersign/work";
import { duration } from "../operator/key-report.ts";
import type { OperatorWork } from "../operator/store.ts";
import { countOf, decisionText } from "../operator/work-report.ts";
import { doubtsOf, type Doubt, type Row } from "./findings.ts";

interface Queue extends QueueSummary {
  /** The age of a task that is neither new nor meant to wait; undefined without one. */
  readonly lateMs: number | undefined;
}

const lateAfterMs = 3_600_000;
const mostPages = 20;

const rows: readonly Row<Queue>[] = [
  ["tasks-dead", ({ queue, dead }) => dead > 0 && `${countOf(dead, "dead ")} in the queue ${queue}`],
  [
    "tasks-old",
    ({ queue, lateMs }) =>
      lateMs !== undefined &&
      `a task was added to the queue ${queue} ${duration(lateMs)} ago, and is not done`,
  ],
  [
    "queue-paused",
    ({ queue, paused }) => paused !== undefined && `the queue ${queue} is paused ${decisionText(paused)}`,
  ],
];

export async function workDoubts(work: OperatorWork): Promise<readonly Doubt[]> {
  const doubts: Doubt[] = [];
  for (const summary of await work.summaries()) {
    // oxlint-disable-next-line no-await-in-loop -- a store may have one connection
    doubts.push(...doubtsOf(rows, { ...summary, lateMs: await lateMsOf(work, summary) }));
  }
  return doubts;
}

/** A task whose first attempt lies ahead is meant to wait, such as for an outcome that is expected. */
async function lateMsOf(
  work: OperatorWork,
  { queue, oldestOpenMs = 0 }: QueueSummary,
): Promise<number | undefined> {
  if (oldestOpenMs <= lateAfterMs) return undefined;
  let nowMs: number | undefined;
  let cursor: string | undefined;
  for (let page = 0; page < mostPages; page += 1) {
    // oxlint-disable-next-line no-await-in-loop -- each page begins where the one before ends
    const { tasks, cursor: next } = await work.list({ queue, state: "open", limit: 1_000, cursor });
    const [oldest] = tasks;
    // By the engine's clock.
    nowMs ??= (oldest?.addedAtMs ?? 0) + oldestOpenMs;
    const reached = nowMs;
    const late = tasks.find(({ attempts, dueAtMs = 0 }) => attempts > 0 || dueAtMs <= reached);
    const last = late ?? tasks.at(-1);
    // Whatever follows is younger.
    if (last === undefined || reached - last.addedAtMs <= lateAfterMs) return undefined;
    if (late !== undefined) return reached - late.addedAtMs;
    if (next === undefined) return undefined;
    cursor = next;
  }
  return undefined;
}
