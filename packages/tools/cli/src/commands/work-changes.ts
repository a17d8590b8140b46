import { setTimeout as sleep } from "node:timers/promises";
import type { QueueSummary } from "@countersign/idempotency/work";
import { Command } from "commander";
import { exitCodes, UsageError, type CommandIo, type Switches, type Texts } from "../command-io.ts";
import { parseInteger, parseTimeout } from "../input.ts";
import { addEntryOptions, readEntry, type EntryFlags } from "../operator/decide.ts";
import { addIdOptions, readIds, type IdFlags } from "../operator/key-text.ts";
import type { OperatorWork } from "../operator/store.ts";
import {
  addWorkOptions,
  assertAskable,
  confirm,
  countDead,
  parseTime,
  readDead,
  readDecision,
  readQueueTarget,
  summaryOf,
  withWork,
  type QueueTarget,
  type WorkCommandInit,
  type WorkFlags,
  type WorkGroup,
} from "../operator/work.ts";
import { countOf, decisionText, queuesTable, summaryJson, tasksTable } from "../operator/work-report.ts";
import { jsonLine } from "../output.ts";
import { dayMs } from "./keys-resolve.ts";

type RetryFlags = WorkFlags & IdFlags & Texts<"since"> & Switches<"all" | "yes">;

type DiscardFlags = WorkFlags & IdFlags & EntryFlags & Texts<"retentionDays"> & Switches<"yes">;

const exitNotes = `
Exit codes:
  0  all of them
  1  not dead, unknown, not confirmed, or refused by the store
  2  usage   3  store not reached
`;

export function retryCommand(group: WorkGroup, { io, finish }: WorkCommandInit): Command {
  const command = new Command("retry").description("let dead tasks run again, with all their attempts");
  addIdOptions(command, "[id...]")
    .option("--all", "every dead task of the queue")
    .option("--since <time>", "those given up at this time or later, such as 2026-11-24T08:30Z")
    .option("--yes", "do not ask");
  return addWorkOptions(command, group)
    .option("--json", "print one JSON document")
    .addHelpText(
      "after",
      `
The platform's workers run them, not this command; nothing runs while the queue
is paused. Of one entity a task that runs again goes before those that wait.
--all and --since ask first; without a terminal, --yes is needed.
${exitNotes}`,
    )
    .action(async (given: readonly string[], flags: RetryFlags) => {
      const ids = readIds(given, flags);
      const deadSinceMs = readSince(flags);
      if (ids.length > 0 === (deadSinceMs !== undefined))
        throw new UsageError("say which: ids of tasks, or --all, or --since");
      const { queue, target } = readQueueTarget(flags, group);
      if (deadSinceMs !== undefined) assertAskable(flags.yes, "retry", io);
      const retried = await withWork(target, async (work) => {
        if (deadSinceMs === undefined) {
          await readDead(work, queue, ids);
          return await work.retry(queue, { ids });
        }
        const count = await countDead(work, queue, deadSinceMs);
        if (count === 0 || flags.yes === true) return count && (await work.retry(queue, { deadSinceMs }));
        io.writeError(`${countOf(count, "dead ")} of ${queue} in ${target.shown}\n`);
        await confirm("retry", io);
        return await work.retry(queue, { deadSinceMs });
      });
      if (retried < Math.max(1, ids.length)) finish(exitCodes.otherwise);
      if (flags.json === true) io.writeOut(jsonLine({ queue, retried }));
      else io.writeOut(`${countOf(retried, "dead ")} of ${queue} in ${target.shown} will run again\n`);
    });
}

function readSince({ all, since }: RetryFlags): number | undefined {
  if (all === true && since !== undefined) throw new UsageError("--all: give it without --since");
  return all === true ? 0 : since === undefined ? undefined : parseTime("--since", since);
}

export function discardCommand(group: WorkGroup, { io, finish }: WorkCommandInit): Command {
  const command = new Command("discard").description("end dead tasks as done, without running them");
  addIdOptions(command, "[id...]")
    .option("--retention-days <n>", "for how long a task that is done is remembered (default: 7)")
    .option("--yes", "do not ask");
  return addWorkOptions(addEntryOptions(command), group)
    .option("--json", "print one JSON document")
    .addHelpText(
      "after",
      `
A discarded task never runs, and is never added again while it is remembered:
what it should have caused has to be done by hand. Without a terminal, --note
and --yes are needed. --retention-days has to be what the platform's stores
have. The decision stays on its record (show); keep the last line.
${exitNotes}`,
    )
    .action(async (given: readonly string[], flags: DiscardFlags) => {
      const ids = readIds(given, flags);
      if (ids.length === 0) throw new UsageError("say which: ids of tasks");
      readEntry(flags, io);
      const days = parseInteger("--retention-days", flags.retentionDays ?? "7", { min: 3, max: 36_500 });
      const { queue, target } = readQueueTarget(flags, group);
      assertAskable(flags.yes, "discard", io);
      const discard = async (work: OperatorWork) => {
        const show = flags.json === true ? io.writeError : io.writeOut;
        show(tasksTable(await readDead(work, queue, ids), io));
        show("discarded: these never run; what they should have caused has to be done by hand.\n");
        const made = await readDecision(flags, io);
        if (flags.yes !== true) await confirm("discard", io);
        return { decision: made, discarded: await work.discard(queue, ids, made) };
      };
      const remembered = { taskRetentionMs: days * dayMs };
      const { discarded, decision } = await withWork(target, discard, remembered);
      if (discarded < ids.length) finish(exitCodes.otherwise);
      if (flags.json === true) {
        io.writeOut(jsonLine({ queue, discarded, ...decision }));
        return;
      }
      const at = new Date(io.clock() * 1000).toISOString();
      io.writeOut(`${at} discarded ${countOf(discarded, "dead ")} of ${queue}, ${decisionText(decision)}\n`);
    });
}

export function pauseCommand(group: WorkGroup, { io }: WorkCommandInit): Command {
  const command = new Command("pause").description("let no worker of any process begin a task");
  return addWorkOptions(addEntryOptions(command), group)
    .option("--json", "print one JSON document")
    .addHelpText(
      "after",
      `
What runs goes on to its end: wait for that with drain. New tasks are added as
before, and wait. Without a terminal, --note is needed.

Exit codes:
  0  paused   1  refused by the store   2  usage   3  store not reached
`,
    )
    .action(async (flags: WorkFlags & EntryFlags) => {
      const { queue, target } = readQueueTarget(flags, group);
      const decision = await readDecision(flags, io);
      await withWork(target, async (work) => {
        await work.pause(queue, decision);
        await noteUnused(work, { queue, target }, io);
      });
      if (flags.json === true) io.writeOut(jsonLine({ queue, paused: decision }));
      else {
        const at = new Date(io.clock() * 1000).toISOString();
        io.writeOut(`${at} ${queue} in ${target.shown} is paused, ${decisionText(decision)}\n`);
      }
    });
}

export function resumeCommand(group: WorkGroup, { io, finish }: WorkCommandInit): Command {
  const command = new Command("resume").description("let workers begin tasks again");
  return addWorkOptions(command, group)
    .option("--json", "print one JSON document")
    .addHelpText(
      "after",
      `
Exit codes:
  0  resumed   1  was not paused, or refused by the store   2  usage
  3  store not reached
`,
    )
    .action(async (flags: WorkFlags) => {
      const { queue, target } = readQueueTarget(flags, group);
      const resumed = await withWork(target, (work) => work.resume(queue));
      if (!resumed) finish(exitCodes.otherwise);
      if (flags.json === true) io.writeOut(jsonLine({ queue, resumed }));
      else io.writeOut(`${queue} in ${target.shown} ${resumed ? "goes on" : "was not paused"}\n`);
    });
}

export function drainCommand(group: WorkGroup, { io, finish }: WorkCommandInit): Command {
  const command = new Command("drain")
    .description("wait until no task of the queue is open")
    .option("--timeout <ms>", "how long at most", "60000");
  return addWorkOptions(command, group)
    .option("--json", "print one JSON document with what is left")
    .addHelpText(
      "after",
      `
The platform's workers do the work, not this command. Of a paused queue it waits
until no task runs. Dead tasks are not open.

Exit codes:
  0  nothing is open   1  something is left, or refused by the store   2  usage
  3  store not reached
`,
    )
    .action(async (flags: WorkFlags & Texts<"timeout"> & { readonly timeout: string }) => {
      const timeoutMs = parseTimeout(flags.timeout);
      const { queue, target } = readQueueTarget(flags, group);
      const left = await withWork(target, async (work) => {
        const found = await drained(work, queue, timeoutMs);
        await noteUnused(work, { queue, target }, io);
        return found;
      });
      if (left.open > 0) finish(exitCodes.otherwise);
      if (flags.json === true) io.writeOut(summaryJson(left));
      else if (left.open > 0) io.writeOut(queuesTable([left], io));
      else io.writeOut(`nothing is open in ${queue} in ${target.shown}\n`);
    });
}

/** A queue whose name is mistyped is paused and empty, while the platform's own goes on. */
async function noteUnused(work: OperatorWork, { queue, target }: QueueTarget, { writeError }: CommandIo) {
  const used = (await work.summaries()).filter(({ open, dead, done }) => open + dead + done > 0);
  if (used.length === 0 || used.some((summary) => summary.queue === queue)) return;
  const others = used.map((summary) => summary.queue).join(", ");
  writeError(`note: no task is in ${queue} in ${target.shown}; there are tasks in ${others}\n`);
}

const pollMs = 250;

/** The queue as it is when nothing more can be waited for. */
async function drained(work: OperatorWork, queue: string, timeoutMs: number): Promise<QueueSummary> {
  const none = { queue, paused: undefined, open: 0, running: 0, dead: 0, done: 0, oldestOpenMs: undefined };
  const endsAt = performance.now() + timeoutMs;
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- asks again until nothing is open
    const found = (await summaryOf(work, queue)) ?? none;
    const waitsFor = found.paused === undefined ? found.open : found.running;
    const restMs = endsAt - performance.now();
    if (waitsFor === 0 || restMs <= 0) return found;
    // oxlint-disable-next-line no-await-in-loop -- as above
    await sleep(Math.min(pollMs, restMs));
  }
}
