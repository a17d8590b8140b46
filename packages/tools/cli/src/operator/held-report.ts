import { leaseExpired } from "@countersign/idempotency/store";
import type { CommandIo } from "../command-io.ts";
import { createPaint } from "../paint.ts";
import { wrap } from "../table.ts";
import { decisionFacts } from "./decision-report.ts";
import { descriptionLines, type Described } from "./describe-key.ts";
import { shownKey } from "./key-text.ts";
import { beginOf, explainState } from "./keys-report.ts";
import type { KeyEntry } from "./known-record.ts";
import { commandLines, resolveCommand } from "./resolve-command.ts";
import type { StoreFlags } from "./store-options.ts";

const labelWidth = 14;

/** A key that waits for a decision: what it is, since when, why, and the commands that decide. */
export function heldBlock(
  { key, record }: KeyEntry,
  described: Described | undefined,
  { io, given }: { readonly io: CommandIo; readonly given: StoreFlags },
): string {
  const paint = createPaint(io.colours);
  const { fence } = record;
  const facts: (readonly [name: string, text: string])[] = [
    ...descriptionLines(described),
    ["begun", beginOf(record, io)],
    ["why", whyHeld({ key, record })],
    ...decisionFacts(record, io),
    ["fence", String(fence)],
  ];
  const lines = facts.flatMap(([name, text]) => labelled(name, text, io.columns));
  const room = io.columns === undefined ? undefined : io.columns - 4;
  const decide = (outcome: "done" | "released"): string[] => {
    const words = resolveCommand(key, { outcome, fence, given });
    return [`  ${meanings[outcome]}`, ...commandLines(words, room).map((line) => `    ${line}`)];
  };
  const commands = [decide("done"), decide("released")].flat();
  return `${[paint("red", shownKey(key)), ...lines, ...commands].join("\n")}\n`;
}

const meanings = {
  done: "money has moved, or will be sent by hand after this:",
  released: "no money has moved, and the next retry is to pay:",
} as const;

/** What to do about all of them. */
export function heldSummary(count: number, terminalColumns: number | undefined): string {
  const [subject, verb] = count === 1 ? ["1 key", "waits"] : [`${count} keys`, "wait"];
  const text =
    `${subject} ${verb} for a decision, and no retry pays until then. Find out whether money has moved, ` +
    "from the bank and not from a log, and run one of the commands.";
  return `\n${wrap(text, Math.min(terminalColumns ?? proseColumns, proseColumns)).join("\n")}\n`;
}

const proseColumns = 80;

/** The name of a fact and its text, in lines that fit the terminal. */
function labelled(name: string, text: string, terminalColumns: number | undefined): string[] {
  const indent = 2 + Math.max(labelWidth, name.length + 2);
  const lines = terminalColumns === undefined ? [text] : wrap(text, Math.max(20, terminalColumns - indent));
  return lines.map((line, at) => (at === 0 ? `  ${name}`.padEnd(indent) : " ".repeat(indent)) + line);
}

function whyHeld({ record }: KeyEntry): string {
  if (record.state !== "held") {
    return `${explainState(record)}: the process that ran it died or hangs; make sure that it is gone`;
  }
  if (record.reason !== leaseExpired) return explainState(record);
  return `held when its lease had expired (${leaseExpired}): the process that ran it died or hung`;
}
