import { Argument, Command } from "commander";
import { exitCodes, type CommandIo, type ExitCode } from "../command-io.ts";
import { createPaint } from "../paint.ts";
import { decisionFacts, type KnownRecord } from "../operator/decision-report.ts";
import { descriptionLines, type Described } from "../operator/describe-key.ts";
import { findKey, readAny } from "../operator/find-key.ts";
import { readKey, shownKey } from "../operator/key-text.ts";
import { beginOf, explainState, keyJson } from "../operator/keys-report.ts";
import { withOperatorStore } from "../operator/operator-store.ts";
import { StoreFailure } from "../operator/store-failure.ts";
import {
  addDescribeOption,
  addStoreOptions,
  readTarget,
  type StoreFlags,
} from "../operator/store-options.ts";
import { printable } from "../printable.ts";
import { exitNotes } from "./keys-resolve.ts";

interface ShowFlags extends StoreFlags {
  readonly keyJson?: string | undefined;
  readonly describe?: string | undefined;
  readonly json?: boolean | undefined;
}

/** All that is known of one key. */
interface ShownKey {
  readonly key: string;
  readonly record: KnownRecord;
  readonly described: Described | undefined;
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
  const command = new Command("show")
    .description("show all of one key: its state, and who decided about it, when and why")
    .addArgument(new Argument("[key]", "the key, or the idempotency_key of the payout"))
    .option("--key-json <json>", "the key as a JSON string, as keys list prints it in double quotes");
  return addDescribeOption(addStoreOptions(command))
    .option("--json", "print one JSON document")
    .addHelpText("after", notes)
    .action(async (key: string | undefined, flags: ShowFlags) => {
      const shown = await readShown(readKey(key, flags.keyJson), flags);
      const { target, ...found } = shown;
      const { record, described } = found;
      io.writeOut(
        flags.json === true
          ? keyJson({ key: found.key, record }, io, described)
          : shownFacts(target, found, io),
      );
      finish(exitCodes.asExpected);
    });
}

async function readShown(given: string, flags: ShowFlags): Promise<ShownKey & { readonly target: string }> {
  const target = readTarget(flags);
  return await withOperatorStore(target, { describe: flags.describe }, async (store) => {
    const key = flags.keyJson === undefined ? await findKey(store, given) : given;
    const record = await readAny(store.idempotency, key);
    if (record === undefined) {
      const message = `${shownKey(key)}: unknown in ${target.shown}: never seen there, given back, or forgotten`;
      throw new StoreFailure(`${message} after its retention`, exitCodes.otherwise);
    }
    // The platform is asked about keys that somebody has.
    const described = record.state === "free" ? undefined : await store.describe?.({ key, record });
    return { key, record, described, target: target.shown };
  });
}

function shownFacts(store: string, { key, record, described }: ShownKey, io: CommandIo): string {
  const facts = [
    ["store", store],
    ["key", shownKey(key)],
    ...descriptionLines(described),
    ["begun", beginOf(record, io)],
    ["state", `${record.state}: ${explainState(record)}`],
    ["fence", String(record.fence)],
    ["fingerprint", printable(record.fingerprint)],
    ...decisionFacts(record, io),
  ] as const;
  const paint = createPaint(io.colours);
  return facts.map(([name, text]) => `${paint("dim", name.padEnd(11))}  ${text}\n`).join("");
}
