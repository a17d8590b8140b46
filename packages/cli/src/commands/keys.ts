import { Argument, Command, Option } from "commander";
import { exitCodes, UsageError, type CommandIo, type ExitCode } from "../command-io.ts";
import { parseInteger } from "../input.ts";
import { jsonLine } from "../json-output.ts";
import { readKey, shownKey } from "../operator/key-text.ts";
import { findKey } from "../operator/find-key.ts";
import { heldBlock, heldSummary } from "../operator/held-report.ts";
import { keyJson, keysTable, shownRecord, type KeyEntry } from "../operator/keys-report.ts";
import { listKeys, listUndecided } from "../operator/list-keys.ts";
import { withOperatorStore } from "../operator/operator-store.ts";
import { resolveKey, type Outcome } from "../operator/resolve-key.ts";
import {
  addDescribeOption,
  addStoreOptions,
  foreignFlag,
  givenFlags,
  readTarget,
  type StoreFlags,
  type StoreTarget,
} from "../operator/store-options.ts";
import { printable } from "../printable.ts";
import { keysCheckCommand } from "./keys-check.ts";

interface ListFlags extends StoreFlags {
  readonly state: KeyEntry["record"]["state"];
  readonly limit: string;
  readonly cursor?: string | undefined;
  readonly json?: boolean | undefined;
}

type HeldFlags = Omit<ListFlags, "state" | "limit" | "cursor"> & { readonly describe?: string | undefined };

interface ResolveFlags extends StoreFlags {
  readonly as: Outcome;
  readonly keyJson?: string | undefined;
  readonly fence?: string | undefined;
  readonly retentionDays?: string | undefined;
  readonly describe?: string | undefined;
  readonly yes?: boolean | undefined;
  readonly json?: boolean | undefined;
}

const dayMs = 86_400_000;

const exitNotes = `
Exit codes:
  0  listed, resolved
  1  nothing to decide, not confirmed, or refused by the store
  2  usage   3  store not reached
`;

const listNotes = `
Examples:
  STORE_URL=postgres://… countersign keys list --state held
  countersign keys list --state run --store-url sqlite:platform.db --json

A key that is printed in double quotes is given by --key-json, in single quotes
of the shell.
${exitNotes}`;

const heldNotes = `
Of each key: what the platform's describe(key, record) says of it, when its
attempt began, why it waits, and the commands that decide about it.

Examples:
  STORE_URL=postgres://… countersign keys held
  countersign keys held --store-module ./store.js
  STORE_URL=redis://… countersign keys held --describe ./describe.js --json
${exitNotes}`;

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

Examples:
  STORE_URL=postgres://… countersign keys resolve op-7.from.to --as done
  STORE_URL=postgres://… countersign keys resolve payout:op-7.from.to \\
    --as released --fence 1795359000000000 --yes
${exitNotes}`;

/** `countersign keys`: the idempotency keys of a platform, and the operator's decision about one; and the check of key files. */
export function keysCommand(io: CommandIo, finish: (code: ExitCode) => void): Command {
  return new Command("keys")
    .description("idempotency keys in a platform's store: list and decide; check: keys of signers")
    .addCommand(listCommand(io, finish))
    .addCommand(heldCommand(io, finish))
    .addCommand(resolveCommand(io, finish))
    .addCommand(keysCheckCommand(io, finish));
}

function listCommand(io: CommandIo, finish: (code: ExitCode) => void): Command {
  const states = ["run", "held", "done"];
  const command = new Command("list")
    .description("list the keys in a state")
    .addOption(new Option("--state <state>", "which keys").choices(states).makeOptionMandatory())
    .option("--limit <n>", "about how many", "100")
    .option("--cursor <cursor>", "go on where the listing before ended");
  return addStoreOptions(command)
    .option("--json", "print a JSON document for each key; the last line may be { cursor }")
    .addHelpText("after", listNotes)
    .action(async (flags: ListFlags) => {
      const { state, cursor, json } = flags;
      const limit = parseInteger("--limit", flags.limit, { min: 1, max: 1000 });
      const target = readTarget(flags);
      const entries: KeyEntry[] = [];
      const next = await withOperatorStore(target, {}, (store) =>
        listKeys(store.idempotency, { state, cursor, limit }, (entry) => void entries.push(entry)),
      );
      if (json === true) {
        io.writeOut(entries.map((entry) => keyJson(entry, io)).join(""));
        io.writeOut(next === undefined ? "" : jsonLine({ cursor: next }));
      } else {
        if (entries.length > 0) io.writeOut(keysTable(entries, io));
        if (next !== undefined) io.writeOut(`more may follow: --cursor ${printable(next)}\n`);
        else if (entries.length === 0) {
          const none = cursor === undefined ? "no key" : "no further key";
          io.writeOut(`${none} is in state ${state} in ${target.shown}\n`);
        }
      }
      finish(exitCodes.asExpected);
    });
}

function heldCommand(io: CommandIo, finish: (code: ExitCode) => void): Command {
  const command = new Command("held").description(
    "list what an operator must decide: held keys, and runs whose lease has expired",
  );
  return addDescribeOption(addStoreOptions(command))
    .option("--json", "print a JSON document for each key")
    .addHelpText("after", heldNotes)
    .action(async (flags: HeldFlags) => {
      await showHeld(flags, givenFlags(command, flags), io);
      finish(exitCodes.asExpected);
    });
}

async function showHeld(flags: HeldFlags, given: StoreFlags, io: CommandIo): Promise<void> {
  const target = readTarget(flags);
  const { json } = flags;
  const count = await withOperatorStore(
    target,
    { describe: flags.describe },
    async ({ idempotency, describe }) => {
      let shown = 0;
      return await listUndecided(idempotency, async (entry) => {
        const described = await describe?.(entry);
        if (json === true) io.writeOut(keyJson(entry, io, described));
        else io.writeOut((shown === 0 ? "" : "\n") + heldBlock(entry, described, { io, given }));
        shown += 1;
      });
    },
  );
  if (json === true) return;
  io.writeOut(
    count === 0 ? `no key waits for a decision in ${target.shown}\n` : heldSummary(count, io.columns),
  );
}

function resolveCommand(io: CommandIo, finish: (code: ExitCode) => void): Command {
  const outcomes = ["done", "released"];
  const command = new Command("resolve")
    .description("decide about a key that is held, or whose run was abandoned")
    .addArgument(new Argument("[key]", "the key, or the idempotency_key of the payout"))
    .option("--key-json <json>", "the key as a JSON string, as keys list prints it in double quotes")
    .addOption(new Option("--as <outcome>", "the decision").choices(outcomes).makeOptionMandatory())
    .option("--fence <n>", "decide about the attempt that was shown with this fence, and about no other")
    .option("--retention-days <n>", "for how long a key that is done is remembered (default: 90)")
    .option("--yes", "do not ask");
  return addDescribeOption(addStoreOptions(command))
    .option("--json", "print one JSON document with the record as it was")
    .addHelpText("after", resolveNotes)
    .action(async (key: string | undefined, flags: ResolveFlags) => {
      await resolve(readKey(key, flags.keyJson), flags, io);
      finish(exitCodes.asExpected);
    });
}

async function resolve(given: string, flags: ResolveFlags, io: CommandIo): Promise<void> {
  const { as: outcome, json, yes } = flags;
  const fence =
    flags.fence === undefined
      ? undefined
      : parseInteger("--fence", flags.fence, { min: 0, max: Number.MAX_SAFE_INTEGER });
  const target = readTarget(flags);
  const retentionDays = readRetentionDays(flags, target);
  if (yes !== true && io.ask === undefined) {
    throw new UsageError("nobody can be asked without a terminal: add --yes to resolve the key");
  }
  const retentionMs = retentionDays === undefined ? undefined : retentionDays * dayMs;
  const { key, record } = await withOperatorStore(
    target,
    { retentionMs, describe: flags.describe },
    async (store) => {
      // What --key-json gives is the key in the store, to the letter.
      const found = flags.keyJson === undefined ? await findKey(store, given) : given;
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
      });
      return { key: found, record: resolved };
    },
  );
  if (json === true) io.writeOut(jsonLine({ key, outcome, was: shownRecord(record) }));
  else io.writeOut(`${shownKey(key)} is ${outcome}\n`);
}

// A store of one's own has its own retention: the platform's code gave it.
function readRetentionDays({ retentionDays }: ResolveFlags, { location }: StoreTarget): number | undefined {
  if (location.engine !== "module") {
    return parseInteger("--retention-days", retentionDays ?? "90", { min: 1, max: 36_500 });
  }
  if (retentionDays !== undefined) throw foreignFlag("--retention-days", location);
  return undefined;
}
