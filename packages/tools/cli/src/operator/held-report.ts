import type { Command } from "commander";
import type { CommandIo } from "../command-io.ts";
import { createPaint, printable } from "../output.ts";
import { descriptionFacts } from "./describe-key.ts";
import { beginOf, decisionFacts, factLines, whyHeld } from "./key-report.ts";
import { shownKey } from "./key-text.ts";
import type { Described, KeyEntry } from "./store.ts";
import type { StoreFlags } from "./store-target.ts";

/** A key that waits for a decision: what it is, since when, why, and the commands that decide. */
export function heldBlock(
  { key, record }: KeyEntry,
  described: Described | undefined,
  { io, store }: { readonly io: CommandIo; readonly store: string },
): string {
  const facts = factLines(
    [
      ...descriptionFacts(described),
      ["begun", beginOf(record, io)],
      ["why", whyHeld(record)],
      ...decisionFacts(record, io),
      ["fence", String(record.fence)],
    ],
    "  ",
  );
  const shown = shownKey(key);
  const given = shown.startsWith('"') ? `--key-json ${singleQuoted(shown)}` : quoted(shown);
  const decide = (outcome: "done" | "released"): string =>
    `    countersign keys resolve ${given} --as ${outcome} --fence ${record.fence}${store}\n`;
  return [
    `${createPaint(io.colours)("red", shown)}\n${facts}`,
    `  money has moved, or will be sent by hand after this:\n${decide("done")}`,
    `  no money has moved, and the next retry is to pay:\n${decide("released")}`,
  ].join("");
}

/** What to do about all of them. */
export function heldSummary(count: number): string {
  return `
${count === 1 ? "1 key waits" : `${count} keys wait`} for a decision, and no retry pays until then. Find out whether
money has moved, from the bank and not from a log, and run one of the commands.
`;
}

const storeFlags = ["storeUrl", "storeModule", "schema", "table", "prefix"] as const;

/** The flags of a store that stood on the command line, for the next one: the environment gives the others to it too. */
export function givenStore(command: Command, flags: StoreFlags): string {
  const given = storeFlags.filter((name) => command.getOptionValueSource(name) === "cli");
  return given
    .map((name) => {
      const flag = command.options.find((option) => option.attributeName() === name)?.long;
      // A password in a URL is not repeated: it is in the environment, or written once more.
      const value = (flags[name] ?? "").replace(/(:\/\/[^/@]*:)[^@]*@/, "$1…@");
      return ` ${flag} ${printable(quoted(value))}`;
    })
    .join("");
}

function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : singleQuoted(text);
}

function singleQuoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
