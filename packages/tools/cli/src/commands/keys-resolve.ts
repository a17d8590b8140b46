import { operatorEntry } from "@countersign/idempotency/store";
import { Command, Option } from "commander";
import { exitCodes, UsageError, type CommandIo, type ExitCode } from "../command-io.ts";
import { parseInteger } from "../input.ts";
import { jsonLine } from "../json-output.ts";
import { changedLine, decisionJson, decisionMarks } from "../operator/decision-report.ts";
import { findKey } from "../operator/find-key.ts";
import { addKeyOptions, readKey, type GivenKey, type KeyFlags } from "../operator/key-text.ts";
import { explainState, recordJson } from "../operator/keys-report.ts";
import { addEntryOptions, readEntry, type EntryFlags } from "../operator/operator-entry.ts";
import { withOperatorStore } from "../operator/operator-store.ts";
import { reopenKey } from "../operator/reopen-key.ts";
import { resolveKey, type Outcome } from "../operator/resolve-key.ts";
import {
  addDescribeOption,
  addStoreOptions,
  foreignFlag,
  readTarget,
  type StoreFlags,
  type StoreTarget,
} from "../operator/store-options.ts";

interface ResolveFlags extends StoreFlags, KeyFlags, EntryFlags {
  readonly as: Outcome;
  readonly fence?: string | undefined;
  readonly retentionDays?: string | undefined;
  readonly describe?: string | undefined;
  readonly yes?: boolean | undefined;
  readonly json?: boolean | undefined;
}

interface ReopenFlags extends StoreFlags, KeyFlags, EntryFlags {
  readonly fence?: string | undefined;
  readonly json?: boolean | undefined;
}

const dayMs = 86_400_000;

export const exitNotes = `
Exit codes:
  0  listed, shown, resolved, reopened
  1  nothing to decide or to take back, unknown, not confirmed, or refused by
     the store
  2  usage   3  store not reached
`;

const resolveNotes = `
done       The payment was made: every retry is answered 409, already processed,
           and never pays again.
released   No payment was made: the key is free, and the next retry pays. Ask
           the bank first, not the log.

The key is the one that keys held shows, or the idempotency_key of the payout
where only one key in the store can be meant; --key-json takes a key to the
letter. Only a held key, or a run whose lease has expired, can be resolved, and
only the attempt that is shown: what another one took or ended meanwhile stays
as it is. --fence says which attempt was looked at before. Without a terminal,
--yes is needed. --retention-days has to be what the platform's stores have,
when that is not the default.

Who decided, when and why stays on the record (keys show), with the reason that
the key was held for. The last line tells all of it: keep it. keys reopen takes
a decision back.

Examples:
  STORE_URL=postgres://… countersign keys resolve op-7.from.to --as done \\
    --note TICKET-4711
  STORE_URL=postgres://… countersign keys resolve payout:op-7.from.to \\
    --as released --fence 1795359000000000 --yes
${exitNotes}`;

const reopenNotes = `
The key is held again, for the reason that it was held for, until it is resolved
anew; no retry pays meanwhile. Possible as long as nothing ran on the decision:
never for what an attempt has done itself, nor for a released key that a retry
has claimed since. The decision stays on the record, with who took it back. The
line that is printed tells all of it: keep it.

Examples:
  STORE_URL=postgres://… countersign keys reopen op-7.from.to \\
    --note 'TICKET-4711: the bank has no such payment'
  STORE_URL=postgres://… countersign keys show op-7.from.to
${exitNotes}`;

/** `countersign keys resolve`: an operator's decision. */
export function resolveCommand(io: CommandIo, finish: (code: ExitCode) => void): Command {
  const outcomes = ["done", "released"];
  const command = new Command("resolve").description(
    "decide about a key that is held, or whose run was abandoned",
  );
  addKeyOptions(command)
    .addOption(new Option("--as <outcome>", "the decision").choices(outcomes).makeOptionMandatory())
    .option("--fence <n>", "decide about the attempt that was shown with this fence, and about no other")
    .option("--retention-days <n>", "for how long a key that is done is remembered (default: 90)")
    .option("--yes", "do not ask");
  return addDescribeOption(addStoreOptions(addEntryOptions(command)))
    .option("--json", "print one JSON document with the record as it was, and the decision")
    .addHelpText("after", resolveNotes)
    .action(async (key: string | undefined, flags: ResolveFlags) => {
      await resolve(readKey(key, flags), flags, io);
      finish(exitCodes.asExpected);
    });
}

async function resolve(given: GivenKey, flags: ResolveFlags, io: CommandIo): Promise<void> {
  const { as: outcome, json, yes } = flags;
  const fence = readFence(flags.fence);
  const entry = readEntry(flags, io);
  const target = readTarget(flags);
  const retentionDays = readRetentionDays(flags, target);
  if (yes !== true && io.ask === undefined) {
    throw new UsageError("nobody can be asked without a terminal: add --yes to resolve the key");
  }
  const retentionMs = retentionDays === undefined ? undefined : retentionDays * dayMs;
  const { key, was, decision } = await withOperatorStore(
    target,
    { retentionMs, describe: flags.describe },
    async (store) => {
      const found = await findKey(store, given);
      const resolved = await resolveKey(store.idempotency, {
        key: found,
        outcome,
        fence,
        retentionDays,
        store: target.shown,
        io,
        describe: store.describe,
        show: json === true ? io.writeError : io.writeOut,
        ask: yes === true ? undefined : io.ask,
        entry,
      });
      return { key: found, ...resolved };
    },
  );
  if (json === true) {
    io.writeOut(jsonLine({ key, outcome, was: recordJson(was), decision: decisionJson(decision) }));
    return;
  }
  const from = [was.state, explainState(was)] as const;
  io.writeOut(changedLine({ key, fence: was.fence, from, to: outcome, entry: decision }));
}

function readFence(fence: string | undefined): number | undefined {
  if (fence === undefined) return undefined;
  return parseInteger("--fence", fence, { min: 0, max: Number.MAX_SAFE_INTEGER });
}

// A store of one's own has its own retention: the platform's code gave it.
function readRetentionDays({ retentionDays }: ResolveFlags, { location }: StoreTarget): number | undefined {
  if (location.engine !== "module") {
    return parseInteger("--retention-days", retentionDays ?? "90", { min: 1, max: 36_500 });
  }
  if (retentionDays !== undefined) throw foreignFlag("--retention-days", location);
  return undefined;
}

/** `countersign keys reopen`: an operator takes a decision back. */
export function reopenCommand(io: CommandIo, finish: (code: ExitCode) => void): Command {
  const command = new Command("reopen").description("take a decision back: the key is held again");
  addKeyOptions(command).option("--fence <n>", "take the decision about this fence back, and no other");
  return addStoreOptions(addEntryOptions(command))
    .option("--json", "print one JSON document with the record as it was, and as it is")
    .addHelpText("after", reopenNotes)
    .action(async (key: string | undefined, flags: ReopenFlags) => {
      await reopen(readKey(key, flags), flags, io);
      finish(exitCodes.asExpected);
    });
}

async function reopen(given: GivenKey, flags: ReopenFlags, io: CommandIo): Promise<void> {
  const fence = readFence(flags.fence);
  const entry = readEntry(flags, io);
  const target = readTarget(flags);
  const { key, was, now } = await withOperatorStore(target, {}, async (store) => {
    const found = await findKey(store, given);
    const reopened = await reopenKey(store.idempotency, { key: found, fence, entry, store: target.shown });
    return { key: found, ...reopened };
  });
  if (flags.json === true) {
    io.writeOut(jsonLine({ key, was: recordJson(was), now: recordJson(now) }));
    return;
  }
  const { reopened = operatorEntry(entry, io.clock() * 1000) } = now.decision ?? {};
  const from = [was.decision.outcome, decisionMarks(was).join("; ")] as const;
  const to = `${now.state} again, at fence ${now.fence}`;
  io.writeOut(changedLine({ key, fence: was.fence, from, to, entry: reopened }));
}
