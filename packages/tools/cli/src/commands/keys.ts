import { Command, Option } from "commander";
import { exitCodes, type CommandIo, type Finish, type Switches, type Texts } from "../command-io.ts";
import { parseInteger } from "../input.ts";
import { unknownKey } from "../operator/decide.ts";
import { factLines, heldBlock, heldSummary, keyFacts, keyJson, keysTable } from "../operator/key-report.ts";
import { addKeyOptions, readKey, type KeyFlags } from "../operator/key-text.ts";
import { withOperatorStore } from "../operator/operator-store.ts";
import { listAnyKeys, readAny, undecidedKeys } from "../operator/records.ts";
import type { KeyEntry } from "../operator/store.ts";
import {
  addStoreOptions,
  givenStoreFlags,
  placeFlags,
  readTarget,
  type StoreFlags,
  type StoreTarget,
} from "../operator/store-target.ts";
import { jsonLine, printable, printableLine } from "../output.ts";
import { keysCheckCommand } from "./keys-check.ts";
import { restoreCommand } from "./keys-restore.ts";
import { exitNotes, reopenCommand, resolveCommand } from "./keys-resolve.ts";

interface ListFlags extends StoreFlags, Texts<"cursor">, Switches<"json"> {
  readonly state?: KeyEntry["record"]["state"] | undefined;
  readonly limit: string;
}

type ShowFlags = StoreFlags & KeyFlags & Switches<"json">;

type HeldFlags = StoreFlags & Switches<"json" | "quiet">;

const listNotes = `
Examples:
  STORE_URL=postgres://… countersign keys list --state held
  countersign keys list --store-url sqlite:platform.db --json

A key that is printed in double quotes is given by --key-json, in single quotes
of the shell.
${exitNotes}`;

const heldNotes = `
Of each key: what the describe(key, record) of a --store-module says of it, when
its attempt began, why it waits, and the commands that decide about it.

Examples:
  STORE_URL=postgres://… countersign keys held
  countersign keys held --store-module ./store.js --json

Exit codes:
  0  no key waits   1  a key waits, or refused by the store   2  usage
  3  store not reached
`;

const showNotes = `
Also of a key that an operator has released, for as long as a done key is
remembered: it is free, and the next retry pays.

Example:
  STORE_URL=postgres://… countersign keys show payout:op-7.from.to
${exitNotes}`;

export function keysCommand(io: CommandIo, finish: Finish): Command {
  return new Command("keys")
    .description("idempotency keys in a platform's store: list and decide; check: keys of signers")
    .addCommand(listCommand(io))
    .addCommand(heldCommand(io, finish))
    .addCommand(showCommand(io))
    .addCommand(resolveCommand(io))
    .addCommand(reopenCommand(io))
    .addCommand(restoreCommand(io, finish))
    .addCommand(keysCheckCommand(io, finish));
}

function listCommand(io: CommandIo): Command {
  const states = ["running", "held", "done"];
  const command = new Command("list")
    .description("list the keys, or those in a state")
    .addOption(new Option("--state <state>", "only these").choices(states))
    .option("--limit <n>", "about how many", "100")
    .option("--cursor <cursor>", "go on where the listing before ended");
  return addStoreOptions(command)
    .option("--json", "print a JSON document for each key; the last line may be { cursor }")
    .addHelpText("after", listNotes)
    .action(async (flags: ListFlags) => {
      const { state, cursor, json } = flags;
      const limit = parseInteger("--limit", flags.limit, { min: 1, max: 1000 });
      const target = readTarget(flags);
      const { entries, cursor: next } = await withOperatorStore(target, ({ idempotency }) =>
        listAnyKeys(idempotency, { state, cursor, limit }),
      );
      if (json === true) {
        io.writeOut(entries.map((entry) => keyJson(entry, io)).join(""));
        io.writeOut(next === undefined ? "" : jsonLine({ cursor: next }));
        return;
      }
      if (entries.length > 0) io.writeOut(keysTable(entries, io));
      if (next !== undefined) io.writeOut(`more may follow: --cursor ${printable(next)}\n`);
      else if (entries.length === 0) {
        const none = cursor === undefined ? "no key" : "no further key";
        io.writeOut(`${none} is in ${state === undefined ? "" : `state ${state} in `}${target.shown}\n`);
      }
    });
}

function heldCommand(io: CommandIo, finish: Finish): Command {
  const command = new Command("held").description(
    "list what an operator must decide: held keys, and runs whose lease has expired",
  );
  return addStoreOptions(command)
    .option("--quiet", "print nothing when no key waits, as cron mails what is printed")
    .option("--json", "print a JSON document for each key")
    .addHelpText("after", heldNotes)
    .action(async (flags: HeldFlags) => {
      const { json, quiet } = flags;
      const target = readTarget(flags);
      const storeFlags = givenStoreFlags(command, target);
      let count = 0;
      let others: readonly string[] = [];
      await withOperatorStore(target, async ({ idempotency, describe, elsewhere }) => {
        for await (const entry of undecidedKeys(idempotency)) {
          const described = await describe?.(entry);
          if (json === true) io.writeOut(keyJson(entry, io, described));
          else io.writeOut((count === 0 ? "" : "\n") + heldBlock(entry, described, { io, storeFlags }));
          count += 1;
        }
        if (count > 0 || elsewhere === undefined) return;
        const { entries } = await listAnyKeys(idempotency, { limit: 1 });
        if (entries.length === 0) others = await elsewhere();
      });
      if (count > 0) finish(exitCodes.otherwise);
      if (others.length > 0) io.writeError(emptyNote(target, others));
      if (json === true || (quiet === true && count === 0)) return;
      io.writeOut(count === 0 ? `no key waits for a decision in ${target.shown}\n` : heldSummary(count));
    });
}

// Also with --quiet: an empty store beside the platform's would say each night that nothing waits.
function emptyNote({ location, shown }: StoreTarget, others: readonly string[]): string {
  const seen = printableLine(others.join(", "));
  const what = location.engine === "redis" ? "keys of such a store" : "such tables";
  return `note: ${shown}: no key at all; ${what} are also at ${seen}; if those are the platform's, name them by ${placeFlags(location)}\n`;
}

function showCommand(io: CommandIo): Command {
  const command = new Command("show").description(
    "show all of one key: its state, and who decided about it, when and why",
  );
  return addStoreOptions(addKeyOptions(command))
    .option("--json", "print one JSON document")
    .addHelpText("after", showNotes)
    .action(async (given: string | undefined, flags: ShowFlags) => {
      const key = readKey(given, flags);
      const target = readTarget(flags);
      const store = target.shown;
      const known = await withOperatorStore(target, async (opened) => {
        const record = await readAny(opened.idempotency, key);
        if (record === undefined) throw await unknownKey(opened.idempotency, { key, store });
        // The platform is asked only about keys that somebody has.
        const described = record.state === "free" ? undefined : await opened.describe?.({ key, record });
        return { key, record, described, store };
      });
      io.writeOut(flags.json === true ? keyJson(known, io, known.described) : factLines(keyFacts(known, io)));
    });
}
