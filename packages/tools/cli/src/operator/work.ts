import type { QueueSummary, TaskRecord, WorkDecision } from "@countersign/idempotency/work";
import type { Command } from "commander";
import {
  CommandError,
  exitCodes,
  UsageError,
  type CommandIo,
  type Finish,
  type Texts,
} from "../command-io.ts";
import { readEntry, type EntryFlags } from "./decide.ts";
import { shownKey } from "./key-text.ts";
import { withOperatorStore } from "./operator-store.ts";
import { pagesOf } from "./records.ts";
import type { OperatorStore, OperatorWork, Remembered } from "./store.ts";
import {
  addNameOptions,
  readUrlTarget,
  storeUrlOption,
  type StoreFlags,
  type StoreTarget,
} from "./store-target.ts";

/** A command for tasks: of one queue, or of any that `--queue` names. */
export interface WorkGroup {
  readonly name: "inbox" | "outcomes" | "work";
  /** Undefined: `--queue` must name it. */
  readonly queue: string | undefined;
}

export interface WorkCommandInit {
  readonly io: CommandIo;
  readonly finish: Finish;
}

export type WorkFlags = Omit<StoreFlags, "storeModule" | "prefix"> &
  Texts<"queue"> & { readonly json?: true };

export function addWorkOptions(command: Command, { queue }: WorkGroup): Command {
  const byDefault = queue === undefined ? "" : ` (default: ${queue})`;
  command.option("--queue <name>", `name of the queue${byDefault}`);
  return addNameOptions(command.addOption(storeUrlOption()));
}

/** Undefined where the group has none and no flag names one. Throws a UsageError. */
export function givenQueue({ queue }: WorkFlags): string | undefined {
  if (queue === undefined || /^[a-z0-9-]{1,64}$/.test(queue)) return queue;
  throw new UsageError("--queue: expected 1 to 64 of a-z, 0-9 and -");
}

export interface QueueTarget {
  readonly queue: string;
  readonly target: StoreTarget;
}

/** Throws a UsageError. */
export function readQueueTarget(flags: WorkFlags, group: WorkGroup): QueueTarget {
  const queue = givenQueue(flags) ?? group.queue;
  if (queue === undefined) throw new UsageError("required option '--queue <name>' not specified");
  return { queue, target: readUrlTarget(flags) };
}

/** Throws a UsageError where the store keeps no tasks. */
export async function withWork<T>(
  target: StoreTarget,
  use: (work: OperatorWork) => Promise<T>,
  remembered?: Remembered,
): Promise<T> {
  const ask = async ({ work }: OperatorStore): Promise<T> => {
    if (work !== undefined) return await use(work);
    const where = "tasks are rows of PostgreSQL, MariaDB or SQLite";
    throw new UsageError(`--store-url: ${target.shown} has no table of work; ${where}`);
  };
  return await withOperatorStore(target, ask, remembered);
}

export async function summaryOf(work: OperatorWork, queue: string): Promise<QueueSummary | undefined> {
  return (await work.summaries()).find((summary) => summary.queue === queue);
}

const lateAfterMs = 3_600_000;
const mostPages = 20;

/** A task whose first attempt lies ahead is meant to wait, such as for an outcome that is expected. */
export async function lateMsOf(work: OperatorWork, { queue, oldestOpenMs = 0 }: QueueSummary) {
  if (oldestOpenMs <= lateAfterMs) return undefined;
  let nowMs: number | undefined;
  let pages = 0;
  for await (const { tasks } of pagesOf((cursor) =>
    work.list({ queue, state: "open", limit: 1_000, cursor }),
  )) {
    // By the engine's clock.
    nowMs ??= (tasks[0]?.addedAtMs ?? 0) + oldestOpenMs;
    const reached = nowMs;
    const late = tasks.find(({ attempts, dueAtMs = 0 }) => attempts > 0 || dueAtMs <= reached);
    const last = late ?? tasks.at(-1);
    // Whatever follows is younger.
    if (last === undefined || reached - last.addedAtMs <= lateAfterMs) return undefined;
    if (late !== undefined) return reached - late.addedAtMs;
    pages += 1;
    if (pages === mostPages) break;
  }
  return undefined;
}

/** Throws a CommandError for a task that is unknown. */
export async function readTask(work: OperatorWork, queue: string, id: string): Promise<TaskRecord> {
  const task = await work.read(queue, id);
  if (task !== undefined) return task;
  const why = `unknown in the queue ${queue}: never added there, or forgotten after its retention`;
  throw new CommandError(`${shownKey(id)}: ${why}`, exitCodes.otherwise);
}

/** Throws a CommandError unless all of these tasks are dead. */
export async function readDead(work: OperatorWork, queue: string, ids: readonly string[]) {
  const tasks: TaskRecord[] = [];
  for (const id of ids) {
    // oxlint-disable-next-line no-await-in-loop -- a store may have one connection
    const task = await readTask(work, queue, id);
    if (task.state !== "dead")
      throw new CommandError(
        `${shownKey(id)}: ${task.state}, not dead; nothing was changed`,
        exitCodes.otherwise,
      );
    tasks.push(task);
  }
  return tasks;
}

// A body may have 1 MiB.
const pageLimit = 50;

export async function countDead(work: OperatorWork, queue: string, sinceMs: number): Promise<number> {
  if (sinceMs === 0) return (await summaryOf(work, queue))?.dead ?? 0;
  let count = 0;
  const pages = pagesOf((cursor) => work.list({ queue, state: "dead", limit: pageLimit, cursor }));
  for await (const { tasks } of pages)
    count += tasks.filter(({ endedAtMs = 0 }) => endedAtMs >= sinceMs).length;
  return count;
}

/** Asks for the note if it was not given. Throws a UsageError if nobody can be asked. */
export async function readDecision(flags: EntryFlags, io: CommandIo): Promise<WorkDecision> {
  const { by, note } = readEntry(flags, io);
  if (note !== undefined) return { by, note };
  const asked = readEntry({ by, note: await io.ask?.("Note for the record, such as a ticket: ") }, io).note;
  if (asked === undefined) throw new UsageError("--note: say why, for the record");
  return { by, note: asked };
}

/** Throws a CommandError unless `word` is typed; a UsageError if nobody can be asked. */
export async function confirm(word: string, { ask }: CommandIo): Promise<void> {
  const answer = await ask?.(`Type ${word} to confirm: `);
  if (answer?.trim() !== word) throw notConfirmed();
}

export function notConfirmed(): CommandError {
  return new CommandError("not confirmed; nothing was changed", exitCodes.otherwise);
}

export function assertAskable(yes: boolean | undefined, word: string, { ask }: CommandIo): void {
  if (yes !== true && ask === undefined)
    throw new UsageError(`nobody can be asked without a terminal: add --yes to ${word}`);
}

const time = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)$/;

/** In milliseconds since 1970. Throws a UsageError, also without a time zone. */
export function parseTime(flag: string, text: string): number {
  const ms = time.test(text) ? Date.parse(text.replace(" ", "T")) : Number.NaN;
  if (!(ms >= 0)) throw new UsageError(`${flag}: expected a time with its zone, such as 2026-11-24T08:30Z`);
  return ms;
}
