import type { IdempotencyRecord } from "@countersign/idempotency";
import { operatorEntry } from "@countersign/idempotency/store";
import { Command, Option } from "commander";
import { UsageError, type CommandIo, type Switches, type Texts } from "../command-io.ts";
import { parseInteger } from "../input.ts";
import type { Entry, EntryFlags, Outcome } from "../operator/decide.ts";
import { addEntryOptions, readEntry, readNote, reopenKey, resolveKey } from "../operator/decide.ts";
import {
  changedLine,
  decisionJson,
  decisionMarks,
  explainState,
  factLines,
  keyFacts,
  mayStillRun,
  recordJson,
} from "../operator/key-report.ts";
import { addKeyOptions, readKey, type KeyFlags } from "../operator/key-text.ts";
import { withOperatorStore } from "../operator/operator-store.ts";
import type { OperatorStore } from "../operator/store.ts";
import {
  addStoreOptions,
  foreignFlag,
  givenStoreFlags,
  readTarget,
  type StoreFlags,
  type StoreTarget,
} from "../operator/store-target.ts";
import { wordingOf } from "../operator/wording.ts";
import { assertAskable, confirm, notConfirmed } from "../operator/work.ts";
import { jsonLine } from "../output.ts";

/** For what is resolved as done. */
export type RetentionFlags = StoreFlags & Texts<"retentionDays">;

type ReopenFlags = StoreFlags & KeyFlags & EntryFlags & Texts<"fence"> & Switches<"json" | "yes">;

type ResolveFlags = ReopenFlags & RetentionFlags & { readonly as: Outcome };

export const dayMs = 86_400_000;

export const exitNotes = `
Exit codes:
  0  listed, shown, resolved, reopened
  1  nothing to decide or to take back, unknown, not confirmed, or refused by
     the store
  2  usage   3  store not reached
`;

const resolveNotes = `
done       The payment was made: every retry is answered 409, already processed,
           and never pays again. Of an event: it counts as processed.
released   No payment was made: the key is free, and the next retry pays. Ask
           the bank first, not the log. Of an event: the next delivery runs it.
           Of an expired lease: end the process that began it before.

Only a held key, or a run whose lease has expired, can be resolved, and only the
attempt that is shown, or that --fence names. Without a terminal, --yes, --note
and --fence are needed. --retention-days has to be what the platform's stores
have. The decision stays on the record (keys show); keep the last line. keys
reopen takes it back.

Examples:
  STORE_URL=postgres://… countersign keys resolve payout:op-7.from.to \\
    --as done --note TICKET-4711
  STORE_URL=postgres://… countersign keys resolve payout:op-7.from.to \\
    --as released --fence 1795359000000000 --note TICKET-4712 --yes
${exitNotes}`;

const reopenNotes = `
The key is held again, for its own reason, until it is resolved anew; no retry
pays meanwhile. Never for what an attempt has done itself, nor for a released
key that a retry has claimed since. Keep the line that is printed.

Example:
  STORE_URL=postgres://… countersign keys reopen payout:op-7.from.to \\
    --note 'TICKET-4711: the bank has no such payment'
${exitNotes}`;

export function resolveCommand(io: CommandIo): Command {
  const command = new Command("resolve").description(
    "decide about a key that is held, or whose run was abandoned",
  );
  addKeyOptions(command)
    .addOption(
      new Option("--as <outcome>", "the decision").choices(["done", "released"]).makeOptionMandatory(),
    )
    .option("--fence <n>", "decide about the attempt that was shown with this fence, and about no other")
    .option("--retention-days <n>", "for how long a key that is done is remembered (default: 90)")
    .option("--yes", "do not ask");
  return addStoreOptions(addEntryOptions(command))
    .option("--json", "print one JSON document with the record as it was, and the decision")
    .addHelpText("after", resolveNotes)
    .action((given: string | undefined, flags: ResolveFlags) => {
      const key = readKey(given, flags);
      const target = readTarget(flags);
      return resolve({ key, target, storeFlags: givenStoreFlags(command, target) }, flags, io);
    });
}

interface GivenKey {
  readonly key: string;
  readonly target: StoreTarget;
  readonly storeFlags: readonly string[];
}

async function resolve({ key, target, storeFlags }: GivenKey, flags: ResolveFlags, io: CommandIo) {
  const { as: outcome, json, yes } = flags;
  const fence = readFence(flags);
  const entry = readEntry(flags, io);
  const days = readRetentionDays(flags);
  assertAskable(yes, "resolve the key, with --note and --fence", io);
  if (io.ask === undefined) assertDecided(entry, fence);
  const store = target.shown;
  const show = json === true ? io.writeError : io.writeOut;
  const remembered = { retentionMs: days === undefined ? undefined : days * dayMs };
  const work = async ({ idempotency, describe }: OperatorStore) =>
    resolveKey(idempotency, { key, outcome, fence, store, storeFlags, clock: io.clock }, async (record) => {
      const described = await describe?.({ key, record });
      const facts = factLines(keyFacts({ key, record, described, store }, io));
      show(`${facts}\n${meaning(key, outcome, days, record)}`);
      return yes === true ? entry : await confirmed(outcome, entry, io);
    });
  const { was, decision } = await withOperatorStore(target, work, remembered);
  if (json === true) {
    io.writeOut(jsonLine({ key, outcome, was: recordJson(was), decision: decisionJson(decision) }));
    return;
  }
  io.writeOut(changedLine({ key, record: was }, [was.state, explainState(was, key), outcome], decision));
}

// A script may decide about another attempt than the one that somebody has looked at.
function assertDecided({ note }: Entry, fence: number | undefined): void {
  if (note === undefined)
    throw new UsageError("--note: say why, for the record; without a terminal nobody can be asked");
  if (fence === undefined)
    throw new UsageError("--fence: without a terminal, give the fence that keys held shows");
}

async function confirmed(outcome: Outcome, entry: Entry, io: CommandIo): Promise<Entry> {
  const note = entry.note ?? (await io.ask?.("Note for the record, such as a ticket (may be empty): "));
  if (note === undefined) throw notConfirmed();
  await confirm(outcome, io);
  return { ...entry, ...readNote(note) };
}

function readFence({ fence }: ReopenFlags): number | undefined {
  if (fence === undefined) return undefined;
  return parseInteger("--fence", fence, { min: 0, max: Number.MAX_SAFE_INTEGER });
}

// A custom store has its own retention, from the platform's code.
export function readRetentionDays(flags: RetentionFlags): number | undefined {
  const { location } = readTarget(flags);
  if (location.engine !== "module")
    return parseInteger("--retention-days", flags.retentionDays ?? "90", { min: 1, max: 36_500 });
  if (flags.retentionDays !== undefined) throw foreignFlag("--retention-days", location);
  return undefined;
}

function meaning(key: string, outcome: Outcome, days: number | undefined, record: IdempotencyRecord): string {
  const time = days === undefined ? "As long as the store remembers the key," : `For ${days} days`;
  const effect = `${outcome}: ${wordingOf(key).effect[outcome].replace("{time}", time)}`;
  if (outcome === "done") {
    return `${effect}\nkeys reopen takes this back; what the services are told meanwhile, nobody can take back.\n`;
  }
  const owner = "The process that began it may only be slow: make sure that it is gone, or both may act.\n";
  return `${effect} keys reopen takes this back until then.\n${mayStillRun(record) ? owner : ""}`;
}

export function reopenCommand(io: CommandIo): Command {
  const command = new Command("reopen").description("take a decision back: the key is held again");
  addKeyOptions(command)
    .option("--fence <n>", "take the decision about this fence back, and no other")
    .option("--yes", "taken, and without a meaning: nothing is asked");
  return addStoreOptions(addEntryOptions(command))
    .option("--json", "print one JSON document with the record as it was, and as it is")
    .addHelpText("after", reopenNotes)
    .action((given: string | undefined, flags: ReopenFlags) => {
      const key = readKey(given, flags);
      const target = readTarget(flags);
      return reopen({ key, target, storeFlags: givenStoreFlags(command, target) }, flags, io);
    });
}

async function reopen({ key, target, storeFlags }: GivenKey, flags: ReopenFlags, io: CommandIo) {
  const fence = readFence(flags);
  const entry = readEntry(flags, io);
  const { was, now } = await withOperatorStore(target, ({ idempotency }) =>
    reopenKey(idempotency, { key, fence, store: target.shown, storeFlags }, entry),
  );
  if (flags.json === true) {
    io.writeOut(jsonLine({ key, was: recordJson(was), now: recordJson(now) }));
    return;
  }
  const { reopened = operatorEntry(entry, io.clock() * 1000) } = now.decision ?? {};
  const to = `${now.state} again, at fence ${now.fence}`;
  const change = [was.decision.outcome, decisionMarks(was).join("; "), to] as const;
  io.writeOut(changedLine({ key, record: was }, change, reopened));
}
