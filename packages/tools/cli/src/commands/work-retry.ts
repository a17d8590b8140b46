import { Command } from "commander";
import { exitCodes, UsageError, type Switches, type Texts } from "../command-io.ts";
import { addEntryOptions, readEntry, type EntryFlags } from "../operator/decide.ts";
import { addIdOptions, readIds, type IdFlags } from "../operator/key-text.ts";
import {
  addWorkOptions,
  assertAskable,
  confirm,
  countDead,
  parseTime,
  readDead,
  readDecision,
  readQueueTarget,
  withWork,
  type WorkCommandInit,
  type WorkFlags,
  type WorkGroup,
} from "../operator/work.ts";
import { countOf, decisionText, tasksTable } from "../operator/work-report.ts";
import { jsonLine } from "../output.ts";

type RetryFlags = WorkFlags & IdFlags & Texts<"since"> & Switches<"all" | "yes">;

type DiscardFlags = WorkFlags & IdFlags & EntryFlags & Switches<"yes">;

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
  addIdOptions(command, "[id...]").option("--yes", "do not ask");
  return addWorkOptions(addEntryOptions(command), group)
    .option("--json", "print one JSON document")
    .addHelpText(
      "after",
      `
A discarded task never runs, and is never added again while it is remembered:
what it should have caused has to be done by hand. The decision stays on its
record (show); keep the last line. Without a terminal, --note and --yes are
needed.
${exitNotes}`,
    )
    .action(async (given: readonly string[], flags: DiscardFlags) => {
      const ids = readIds(given, flags);
      if (ids.length === 0) throw new UsageError("say which: ids of tasks");
      readEntry(flags, io);
      const { queue, target } = readQueueTarget(flags, group);
      assertAskable(flags.yes, "discard", io);
      const { discarded, decision } = await withWork(target, async (work) => {
        const show = flags.json === true ? io.writeError : io.writeOut;
        show(tasksTable(await readDead(work, queue, ids), io));
        show("discarded: these never run; what they should have caused has to be done by hand.\n");
        const made = await readDecision(flags, io);
        if (flags.yes !== true) await confirm("discard", io);
        return { decision: made, discarded: await work.discard(queue, ids, made) };
      });
      if (discarded < ids.length) finish(exitCodes.otherwise);
      if (flags.json === true) {
        io.writeOut(jsonLine({ queue, discarded, ...decision }));
        return;
      }
      const at = new Date(io.clock() * 1000).toISOString();
      io.writeOut(`${at} discarded ${countOf(discarded, "dead ")} of ${queue}, ${decisionText(decision)}\n`);
    });
}
