import type { QueueSummary } from "@countersign/idempotency/work";
import { Command, Option } from "commander";
import {
  exitCodes,
  UsageError,
  type CommandIo,
  type Finish,
  type Switches,
  type Texts,
} from "../command-io.ts";
import { parseInteger } from "../input.ts";
import { addIdOptions, readIds, type IdFlags } from "../operator/key-text.ts";
import { pagesOf, refusingCursor } from "../operator/records.ts";
import { givenStoreFlags, readUrlTarget } from "../operator/store-target.ts";
import {
  addWorkOptions,
  givenQueue,
  lateMsOf,
  readQueueTarget,
  readTask,
  withWork,
  type WorkCommandInit,
  type WorkFlags,
  type WorkGroup,
} from "../operator/work.ts";
import {
  countOf,
  isAlarming,
  lateText,
  queuesTable,
  summaryJson,
  taskJson,
  tasksTable,
  taskText,
} from "../operator/work-report.ts";
import type { OperatorWork } from "../operator/store.ts";
import { jsonLine, printable } from "../output.ts";
import { discardCommand, drainCommand, pauseCommand, resumeCommand, retryCommand } from "./work-changes.ts";

type StatusFlags = WorkFlags & Switches<"quiet">;

interface ListFlags extends WorkFlags, Texts<"cursor"> {
  readonly state?: "open" | "dead" | "done";
  readonly limit: string;
}

const exitNotes = `
Exit codes:
  0  as expected
  1  something is dead, old, paused, overdue, unknown or left, or the store
     refuses
  2  usage   3  store not reached
`;

export function inboxCommand(io: CommandIo, finish: Finish): Command {
  const about = "webhooks that are worked on later: what waits, dead letters, pause";
  return workGroup({ name: "inbox", queue: "inbox" }, about, { io, finish });
}

export function outcomesCommand(io: CommandIo, finish: Finish): Command {
  const about = "outcomes of payouts on their way to the service: what waits, dead letters, pause";
  return workGroup({ name: "outcomes", queue: "outcomes" }, about, { io, finish });
}

export function workCommand(io: CommandIo, finish: Finish): Command {
  const about = "tasks of every queue in a platform's database; inbox and outcomes are two of them";
  return workGroup({ name: "work", queue: undefined }, about, { io, finish });
}

function workGroup(group: WorkGroup, about: string, init: WorkCommandInit): Command {
  const command = new Command(group.name)
    .description(about)
    .addCommand(statusCommand(group, init), { isDefault: true });
  for (const create of [
    listCommand,
    showCommand,
    retryCommand,
    discardCommand,
    pauseCommand,
    resumeCommand,
    drainCommand,
  ])
    command.addCommand(create(group, init));
  return command;
}

function statusCommand(group: WorkGroup, { io, finish }: WorkCommandInit): Command {
  const { name } = group;
  const command = new Command("status").description(
    "show how many tasks are open, running, dead and done, and who has paused what",
  );
  return addWorkOptions(command, group)
    .option("--quiet", "print nothing when nothing is dead, old, paused or overdue")
    .option("--json", "print a JSON document for each queue")
    .addHelpText(
      "after",
      `
oldest is the age of the oldest open task. Ends with 1 when a task is dead or
old, a queue is paused, or an expected outcome overdue.

Example:
  STORE_URL=postgres://… countersign ${name}
${exitNotes}`,
    )
    .action(async (flags: StatusFlags) => {
      const queue = givenQueue(flags);
      const target = readUrlTarget(flags);
      // An outcome that is expected waits in a queue beside the group's.
      const isOfGroup = (found: string): boolean =>
        queue === undefined
          ? group.queue === undefined || found === group.queue || found.startsWith(`${group.queue}-`)
          : found === queue;
      const { summaries, overdue, unworked } = await withWork(target, async (work) => {
        const known = await work.summaries();
        const ofGroup = known.filter((summary) => isOfGroup(summary.queue));
        return {
          summaries: ofGroup,
          overdue: await overdueOf(work, ofGroup),
          unworked: await unworkedOf(work, ofGroup),
        };
      });
      if (summaries.some(isAlarming) || overdue.size > 0 || unworked.size > 0) finish(exitCodes.otherwise);
      else if (flags.quiet === true) return;
      if (flags.json === true) {
        io.writeOut(summaries.map(summaryJson).join(""));
        return;
      }
      if (summaries.length === 0) {
        io.writeOut(`no ${queue ?? group.queue ?? "queue"} has tasks in ${target.shown}\n`);
        return;
      }
      io.writeOut(queuesTable(summaries, io));
      for (const { queue: alarming, open, dead, paused } of summaries) {
        const next = (what: string): string => {
          const place = alarming === group.queue ? [] : [`--queue ${alarming}`];
          const shared = givenStoreFlags(command, target);
          return `  ${["countersign", name, what, ...place, ...shared].join(" ")}\n`;
        };
        const late = overdue.get(alarming);
        if (late !== undefined)
          io.writeOut(`\n${late} overdue in ${alarming}:\n${next("list --state open")}`);
        else if (open > 0 && group.queue !== undefined && alarming !== group.queue)
          io.writeOut(`\n${open} open in ${alarming}:\n${next("list")}`);
        const waitsMs = unworked.get(alarming);
        if (waitsMs !== undefined)
          io.writeOut(`\n${lateText(alarming, waitsMs)}:\n${next("list --state open")}`);
        if (dead > 0)
          io.writeOut(`\n${countOf(dead, "dead ")} of ${alarming}:\n${next("list --state dead")}`);
        if (paused !== undefined) io.writeOut(`\n${alarming} is paused; to go on:\n${next("resume")}`);
      }
    });
}

const expectedSuffix = "-expected";
const mostOverdue = 100;
// A worker looks within seconds. After that long, none runs.
const unseenMs = 300_000;

/** How many payouts' outcomes were due and are not reported, by the queue that expects them. The oldest come first. */
async function overdueOf(work: OperatorWork, summaries: readonly QueueSummary[]) {
  const found = new Map<string, string>();
  for (const summary of summaries) {
    const { queue, open } = summary;
    if (open === 0 || !queue.endsWith(expectedSuffix)) continue;
    // oxlint-disable-next-line no-await-in-loop -- one queue of the platform, seldom two
    const late = await countOverdue(work, summary);
    if (late > 0) found.set(queue, late === mostOverdue ? `${late} or more` : String(late));
  }
  return found;
}

/** How long a task waits that a worker should have ended, by its queue. What is expected is overdue instead. */
async function unworkedOf(
  work: OperatorWork,
  summaries: readonly QueueSummary[],
): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>();
  for (const summary of summaries) {
    // oxlint-disable-next-line no-await-in-loop -- a store may have one connection
    const lateMs = summary.queue.endsWith(expectedSuffix) ? undefined : await lateMsOf(work, summary);
    if (lateMs !== undefined) found.set(summary.queue, lateMs);
  }
  return found;
}

async function countOverdue(work: OperatorWork, { queue, oldestOpenMs = 0 }: QueueSummary): Promise<number> {
  let late = 0;
  let nowMs: number | undefined;
  for await (const { tasks } of pagesOf((cursor) =>
    work.list({ queue, state: "open", limit: mostOverdue, cursor }),
  )) {
    // By the engine's clock.
    nowMs ??= (tasks[0]?.addedAtMs ?? 0) + oldestOpenMs;
    const unseenSinceMs = nowMs - unseenMs;
    const due = tasks.filter(({ attempts, dueAtMs = 0 }) => attempts > 0 || dueAtMs < unseenSinceMs);
    // One that was reported since is seen at the next look of the platform.
    const outcomesOf = due.map(({ id }) => work.read(queue.slice(0, -expectedSuffix.length), id));
    // oxlint-disable-next-line no-await-in-loop -- one page after the other
    late += (await Promise.all(outcomesOf)).filter((outcome) => outcome === undefined).length;
    if (due.length === 0 || late >= mostOverdue) break;
  }
  return Math.min(late, mostOverdue);
}

function listCommand(group: WorkGroup, { io }: WorkCommandInit): Command {
  const command = new Command("list")
    .description("list tasks, oldest first")
    .addOption(new Option("--state <state>", "only these").choices(["open", "dead", "done"]))
    .option("--limit <n>", "how many at most", "100")
    .option("--cursor <cursor>", "go on where the listing before ended");
  return addWorkOptions(command, group)
    .option("--json", "print a JSON document for each task; the last line may be { cursor }")
    .addHelpText(
      "after",
      `
A task that is printed in double quotes is given by --id-json, in single quotes
of the shell.

Example:
  STORE_URL=postgres://… countersign ${group.name} list${queueFlag(group)} --state dead
${exitNotes}`,
    )
    .action(async (flags: ListFlags) => {
      const { state, cursor } = flags;
      const limit = parseInteger("--limit", flags.limit, { min: 1, max: 1000 });
      const { queue, target } = readQueueTarget(flags, group);
      const { tasks, cursor: next } = await withWork(target, (work) =>
        refusingCursor(() => work.list({ queue, state, cursor, limit })),
      );
      if (flags.json === true) {
        io.writeOut(tasks.map(taskJson).join(""));
        io.writeOut(next === undefined ? "" : jsonLine({ cursor: next }));
        return;
      }
      if (tasks.length > 0) io.writeOut(tasksTable(tasks, io));
      if (next !== undefined) io.writeOut(`more may follow: --cursor ${printable(next)}\n`);
      else if (tasks.length === 0) {
        const none = cursor === undefined ? "no" : "no further";
        io.writeOut(
          `${none} ${state === undefined ? "" : `${state} `}task is in ${queue} in ${target.shown}\n`,
        );
      }
    });
}

function showCommand(group: WorkGroup, { io }: WorkCommandInit): Command {
  const command = new Command("show").description(
    "show all of one task: its body, its attempts, and why they failed",
  );
  return addWorkOptions(addIdOptions(command, "[id]"), group)
    .option("--json", "print one JSON document, with the whole body")
    .addHelpText(
      "after",
      `
The body is data of the service or of your platform: it may name people.

Example:
  STORE_URL=postgres://… countersign ${group.name} show${queueFlag(group)} evt_4711
${exitNotes}`,
    )
    .action(async (given: string | undefined, flags: WorkFlags & IdFlags) => {
      const [id, ...others] = readIds(given === undefined ? [] : [given], flags);
      if (id === undefined || others.length > 0) throw new UsageError("give one task: <id>, or --id-json");
      const { queue, target } = readQueueTarget(flags, group);
      const task = await withWork(target, (work) => readTask(work, queue, id));
      io.writeOut(flags.json === true ? taskJson(task) : taskText(task, target.shown, io));
    });
}

function queueFlag({ queue }: WorkGroup): string {
  return queue === undefined ? " --queue <name>" : "";
}
