import { Command, Option } from "commander";
import { exitCodes, type CommandIo, type ExitCode } from "../command-io.ts";
import { parseInteger } from "../input.ts";
import { jsonLine } from "../json-output.ts";
import { heldBlock, heldSummary } from "../operator/held-report.ts";
import { keyJson, keysTable } from "../operator/keys-report.ts";
import type { KeyEntry } from "../operator/known-record.ts";
import { listKeys, listUndecided } from "../operator/list-keys.ts";
import { withOperatorStore } from "../operator/operator-store.ts";
import {
  addDescribeOption,
  addStoreOptions,
  givenFlags,
  readTarget,
  type StoreFlags,
} from "../operator/store-options.ts";
import { printable } from "../printable.ts";
import { keysCheckCommand } from "./keys-check.ts";
import { exitNotes, reopenCommand, resolveCommand } from "./keys-resolve.ts";
import { showCommand } from "./keys-show.ts";

interface ListFlags extends StoreFlags {
  readonly state: KeyEntry["record"]["state"];
  readonly limit: string;
  readonly cursor?: string | undefined;
  readonly json?: boolean | undefined;
}

type HeldFlags = Omit<ListFlags, "state" | "limit" | "cursor"> & { readonly describe?: string | undefined };

const listNotes = `
Examples:
  STORE_URL=postgres://… countersign keys list --state held
  countersign keys list --state run --store-url sqlite:platform.db --json

A key that is printed in double quotes is given by --key-json, in single quotes
of the shell. What an operator has declared as paid says so; keys show
tells by whom.
${exitNotes}`;

const heldNotes = `
Of each key: what the platform's describe(key, record) says of it, when its
attempt began, why it waits, and the commands that decide about it.

Examples:
  STORE_URL=postgres://… countersign keys held
  countersign keys held --store-module ./store.js
  STORE_URL=redis://… countersign keys held --describe ./describe.js --json
${exitNotes}`;

/** `countersign keys`: the idempotency keys of a platform, and the operator's decision about one; and the check of key files. */
export function keysCommand(io: CommandIo, finish: (code: ExitCode) => void): Command {
  return new Command("keys")
    .description("idempotency keys in a platform's store: list and decide; check: keys of signers")
    .addCommand(listCommand(io, finish))
    .addCommand(heldCommand(io, finish))
    .addCommand(showCommand(io, finish))
    .addCommand(resolveCommand(io, finish))
    .addCommand(reopenCommand(io, finish))
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
