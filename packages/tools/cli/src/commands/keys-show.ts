import { Command } from "commander";
import { exitCodes, type CommandIo, type ExitCode } from "../command-io.ts";
import { findKey, readAny } from "../operator/find-key.ts";
import { addKeyOptions, readKey, shownKey, type GivenKey, type KeyFlags } from "../operator/key-text.ts";
import { keyFacts, keyJson, type KnownKey } from "../operator/keys-report.ts";
import { createPaint } from "../paint.ts";
import { withOperatorStore } from "../operator/operator-store.ts";
import { StoreFailure } from "../operator/store-failure.ts";
import {
  addDescribeOption,
  addStoreOptions,
  readTarget,
  type StoreFlags,
} from "../operator/store-options.ts";
import { exitNotes } from "./keys-resolve.ts";

interface ShowFlags extends StoreFlags, KeyFlags {
  readonly describe?: string | undefined;
  readonly json?: boolean | undefined;
}

const notes = `
Also of a key that an operator has released, for as long as a done key is
remembered: it is free, and the next retry pays.

Examples:
  STORE_URL=postgres://… countersign keys show op-7.from.to
  countersign keys show op-7.from.to --store-url sqlite:platform.db --json
${exitNotes}`;

/** `countersign keys show`: one key, with what an operator has decided about it. */
export function showCommand(io: CommandIo, finish: (code: ExitCode) => void): Command {
  const command = new Command("show").description(
    "show all of one key: its state, and who decided about it, when and why",
  );
  return addDescribeOption(addStoreOptions(addKeyOptions(command)))
    .option("--json", "print one JSON document")
    .addHelpText("after", notes)
    .action(async (key: string | undefined, flags: ShowFlags) => {
      const known = await readKnown(readKey(key, flags), flags);
      io.writeOut(flags.json === true ? keyJson(known, io, known.described) : shownFacts(known, io));
      finish(exitCodes.asExpected);
    });
}

async function readKnown(given: GivenKey, flags: ShowFlags): Promise<KnownKey> {
  const target = readTarget(flags);
  return await withOperatorStore(target, { describe: flags.describe }, async (store) => {
    const key = await findKey(store, given);
    const record = await readAny(store.idempotency, key);
    if (record === undefined) {
      const message = `${shownKey(key)}: unknown in ${target.shown}: never seen there, given back, or forgotten`;
      throw new StoreFailure(`${message} after its retention`, exitCodes.otherwise);
    }
    // The platform is asked about keys that somebody has.
    const described = record.state === "free" ? undefined : await store.describe?.({ key, record });
    return { key, record, described, store: target.shown };
  });
}

function shownFacts(known: KnownKey, io: CommandIo): string {
  const paint = createPaint(io.colours);
  return keyFacts(known, io)
    .map(([name, text]) => `${paint("dim", name)}  ${text}\n`)
    .join("");
}
