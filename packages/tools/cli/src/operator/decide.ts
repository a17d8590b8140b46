import type { IdempotencyRecord, ReleasedKey } from "@countersign/idempotency";
import { leaseExpired, operatorEntry } from "@countersign/idempotency/store";
import type { Command } from "commander";
import { CommandError, exitCodes, UsageError, type CommandIo, type Texts } from "../command-io.ts";
import { decisionMarks } from "./key-report.ts";
import { printable } from "../output.ts";
import { assertLength, keyWords, maxKeyLength, shownKey } from "./key-text.ts";
import { isDecided, isUndecided, readAny, type DecidedRecord } from "./records.ts";
import type { KnownRecord, OperatorStore } from "./store.ts";

export type Outcome = "done" | "released";

export interface Entry {
  readonly by: string;
  readonly note?: string | undefined;
}

export type EntryFlags = Texts<"by" | "note">;

export function addEntryOptions(command: Command): Command {
  return command
    .option("--by <name>", "who decides, for the record (default: your login name)")
    .option("--note <text>", "why, for the record: a ticket, what the bank has said");
}

/** Throws a UsageError, also if the system knows no name for the user. */
export function readEntry(flags: EntryFlags, { login }: CommandIo): Entry {
  const by = flags.by ?? login?.();
  if (by === undefined) throw new UsageError("--by: the system knows no name for you, give one");
  assertLength("--by", by, 128);
  return { by, ...readNote(flags.note) };
}

export function readNote(note: string | undefined): { readonly note?: string } {
  if (note === undefined || note.trim() === "") return {};
  if (/^(?:\.\.\.|…)$/.test(note.trim())) throw new UsageError("--note: say why, in place of the dots");
  assertLength("--note", note, 512);
  return { note };
}

interface Subject {
  readonly key: string;
  /** The attempt that the operator has looked at; default: the present one. */
  readonly fence: number | undefined;
  readonly store: string;
  /** The store's flags as typed, for the next command. */
  readonly storeFlags: readonly string[];
}

type Store = OperatorStore["idempotency"];

/** Decides about the attempt that `confirm` has shown, and no later one. Throws a CommandError, changing nothing, if that came too late. */
export async function resolveKey(
  store: Store,
  { outcome, clock, ...subject }: Subject & { readonly outcome: Outcome; readonly clock: CommandIo["clock"] },
  confirm: (record: IdempotencyRecord) => Promise<Entry>,
): Promise<{ readonly was: IdempotencyRecord; readonly decision: ReleasedKey["decision"] }> {
  const { key } = subject;
  const was = await store.read(key);
  if (was === undefined || !isUndecided(was))
    throw await nothingToDecide(store, subject, await readAny(store, key));
  const { fence } = was;
  if (subject.fence !== undefined && subject.fence !== fence) throw changed(key, fence);
  const entry = await confirm(was);
  if ((await store.resolve(key, outcome, { fence, ...entry })) !== "ok") {
    const now = await readAny(store, key);
    throw now === undefined || now.fence === fence
      ? await nothingToDecide(store, subject, now)
      : changed(key, now.fence);
  }
  const kept = (await readAny(store, key))?.decision;
  if (kept?.fence === fence) return { was, decision: kept };
  // The store keeps no decisions, or the key was decided anew meanwhile: show what was sent.
  const reason = was.state === "held" ? was.reason : leaseExpired;
  return { was, decision: { ...operatorEntry(entry, clock() * 1000), outcome, fence, reason } };
}

function changed(key: string, fence: number): CommandError {
  const now = `${shownKey(key)} has changed since it was shown: it is at fence ${fence} now`;
  return new CommandError(`${now}; nothing was resolved, look at it again`, exitCodes.otherwise);
}

async function nothingToDecide(store: Store, subject: Subject, record: KnownRecord | undefined) {
  if (record === undefined || (record.state === "free" && !isDecided(record)))
    return await unknownKey(store, subject);
  if (isDecided(record)) return decidedKey(subject, record);
  return new CommandError(`${shownKey(subject.key)}: ${whyUndecidable(record)}`, exitCodes.otherwise);
}

function whyUndecidable(record: IdempotencyRecord): string {
  if (record.state === "done") return "already done; there is nothing to decide";
  if (record.state === "held") return "held meanwhile; nothing was resolved, look at it again";
  return `still running: its lease ends in ${record.remainingMs} ms unless its owner renews it; nothing was resolved`;
}

function decidedKey({ key, storeFlags }: Subject, record: DecidedRecord): CommandError {
  const { at, note } = record.decision;
  const [who] = decisionMarks(record);
  const why = note === undefined ? "" : `, note ${printable(JSON.stringify(note))}`;
  const now = record.state === "free" ? ", and free for the next retry" : "";
  const what = `${shownKey(key)}: already ${who} at ${new Date(at).toISOString()}${why}${now}`;
  const reopen = ["countersign keys reopen", keyWords(key), ...storeFlags].join(" ");
  return new CommandError(`${what}; to take it back: ${reopen}`, exitCodes.otherwise);
}

// Those of payoutEndpoint and createWebhookHandler.
const usualScopes = ["payout:", "webhook-event:"];

export async function unknownKey(
  store: Pick<Store, "read" | "readReleased">,
  { key, store: shownStore }: Pick<Subject, "key" | "store">,
): Promise<CommandError> {
  const why = `unknown in ${shownStore}: never seen there, released, or forgotten after its retention`;
  const scoped = usualScopes.map((scope) => scope + key).filter((each) => each.length <= maxKeyLength);
  const known = await Promise.all(scoped.map((each) => readAny(store, each)));
  const near = scoped.filter((_each, index) => known[index] !== undefined);
  const hint =
    near.length === 0
      ? "give the key as keys held prints it, with its scope, such as payout:, in double quotes by --key-json"
      : `did you mean ${near.map(keyWords).join(" or ")}?`;
  return new CommandError(`${shownKey(key)}: ${why}; ${hint}`, exitCodes.otherwise);
}

/** Takes a decision back. Throws a CommandError, changing nothing, if there is none or an attempt has begun since. */
export async function reopenKey(
  store: Store,
  { key, fence, store: shownStore }: Subject,
  entry: Entry,
): Promise<{ readonly was: DecidedRecord; readonly now: KnownRecord }> {
  const fail = (why: string): CommandError =>
    new CommandError(`${shownKey(key)}: ${why}; nothing was changed`, exitCodes.otherwise);
  const was = await readAny(store, key);
  if (was === undefined) throw await unknownKey(store, { key, store: shownStore });
  if (!isDecided(was)) throw fail(whyNotReopened(was));
  if (fence !== undefined && fence !== was.fence)
    throw fail(`it is at fence ${was.fence} now, look at it again`);
  const answer = await store.reopen(key, { fence: was.fence, ...entry });
  const now = await readAny(store, key);
  if (answer !== "ok" || now === undefined) throw fail("it has changed since it was read, look at it again");
  return { was, now };
}

function whyNotReopened({ state, decision }: KnownRecord): string {
  if (state === "held") return "held already, it waits for a decision";
  if (state === "running") return "an attempt has the key, nothing can be taken back";
  const when = decision === undefined ? "" : " after the decision";
  return state === "done" ? `an attempt has done it itself${when}` : `an attempt has had it${when}`;
}
