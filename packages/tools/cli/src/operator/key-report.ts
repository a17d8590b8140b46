import { begunAtMs, failureCounts } from "@countersign/idempotency/internal";
import { leaseExpired } from "@countersign/idempotency/store";
import type { ReleasedKey } from "@countersign/idempotency";
import type { CommandIo } from "../command-io.ts";
import { createPaint, jsonLine, printable, printableLine } from "../output.ts";
import { tableText } from "../table.ts";
import { descriptionFacts } from "./describe-key.ts";
import { keyWords, shownKey } from "./key-text.ts";
import { isDecided, shownRecord } from "./records.ts";
import type { Described, KeyEntry, KnownRecord } from "./store.ts";
import { wordingOf } from "./wording.ts";

export type Fact = readonly [name: string, text: string];

const titles = ["key", "state", "fence", "fingerprint", "what is known"];

export function keysTable(entries: readonly KeyEntry[], { colours, columns }: CommandIo): string {
  const paint = createPaint(colours);
  const rows = entries.map(({ key, record }) => [
    shownKey(key),
    record.state,
    String(record.fence),
    printable(record.fingerprint.slice(0, 12)),
    failureCounts.has(key, record)
      ? "counts a failed attempt of an event"
      : [explainState(record, key), ...decisionMarks(record)].join("; "),
  ]);
  const colour = (line: string, at = -1): string => {
    const { record } = entries[at] ?? {};
    if (record === undefined) return paint("bold", line);
    if (record.state === "running") return line;
    // An operator's "done" is no payment that anybody here has made.
    const done = isDecided(record) ? "yellow" : "green";
    return paint(record.state === "done" ? done : "red", line);
  };
  return tableText(titles, rows, { whole: 3, columns, paint: colour });
}

export function keyJson(
  { key, record }: Pick<KnownKey, "key" | "record">,
  { clock }: CommandIo,
  described: Described | object = {},
): string {
  const begunAt = begunAtMs(record.fence, clock() * 1000);
  return jsonLine({
    key,
    ...recordJson(record),
    begunAt: begunAt === undefined ? null : new Date(begunAt).toISOString(),
    ...described,
  });
}

interface KnownKey {
  readonly key: string;
  readonly record: KnownRecord;
  readonly described: Described | undefined;
  readonly store: string;
}

export function keyFacts({ key, record, described, store }: KnownKey, io: CommandIo): readonly Fact[] {
  return [
    ["store", store],
    ["key", shownKey(key)],
    ...descriptionFacts(described),
    ["begun", beginOf(record, io)],
    ["state", `${record.state}: ${explainState(record, key)}`],
    ["fence", String(record.fence)],
    ["fingerprint", printable(record.fingerprint)],
    ...decisionFacts(record, io),
  ];
}

export function factLines(facts: readonly Fact[], indent: string = ""): string {
  return facts.map(([name, text]) => `${indent}${`${name}  `.padEnd(14)}${text}\n`).join("");
}

function beginOf({ fence }: KnownRecord, { clock }: CommandIo): string {
  const nowMs = clock() * 1000;
  const ms = begunAtMs(fence, nowMs);
  return ms === undefined ? "unknown: the fences of this store are no times" : timeAgo(ms, nowMs);
}

/** The times of a decision become text. */
export function recordJson(record: KnownRecord): object {
  const { decision } = record;
  const shown = shownRecord(record);
  return decision === undefined ? shown : { ...shown, decision: decisionJson(decision) };
}

export function explainState(record: KnownRecord, key: string): string {
  if (record.state === "held") return printableLine(record.reason);
  if (record.state === "free") return "the next claim takes it";
  if (record.state === "done") return isDecided(record) ? wordingOf(key).declared : "processed";
  const { remainingMs } = record;
  return remainingMs > 0
    ? `lease ends in ${duration(remainingMs)}`
    : `lease expired ${duration(-remainingMs)} ago`;
}

/** Nobody has seen the attempt end: its process may go on, even after a retry has made the run a held key. */
export function mayStillRun(record: KnownRecord): boolean {
  return record.state === "running" || (record.state === "held" && record.reason === leaseExpired);
}

function whyHeld(record: KnownRecord, key: string): string {
  const state = explainState(record, key);
  if (!mayStillRun(record)) return state;
  const since = record.state === "held" ? `held when its lease had expired (${leaseExpired})` : state;
  return `${since}: the process that ran it died or hangs; make sure that it is gone`;
}

export function decisionMarks({ fence, decision }: KnownRecord): string[] {
  if (decision === undefined) return [];
  const { outcome, reopened } = decision;
  if (reopened !== undefined) return [`${outcome} ${nameOf(decision)}, reopened ${nameOf(reopened)}`];
  const when = decision.fence === fence ? "" : ", before this attempt";
  return [`${outcome} ${nameOf(decision)}${when}`];
}

type OperatorEntry = Pick<ReleasedKey["decision"], "at" | "by" | "note">;

function decisionFacts({ fence, decision }: KnownRecord, { clock }: CommandIo): readonly Fact[] {
  if (decision === undefined) return [];
  const about = decision.fence === fence ? "" : `, about fence ${decision.fence}`;
  const { reopened, outcome, reason } = decision;
  const entry = (each: OperatorEntry): string => `${nameOf(each)}, ${timeAgo(each.at, clock() * 1000)}`;
  return [
    ["decided", `${outcome}${about}, ${entry(decision)}`],
    ["held for", printableLine(reason)],
    ...noteOf(decision),
    ...(reopened === undefined ? [] : [["reopened", entry(reopened)] as const, ...noteOf(reopened)]),
  ];
}

function nameOf({ by }: OperatorEntry): string {
  return by === undefined ? "by an operator" : `by ${printableLine(by)}`;
}

function noteOf({ note }: OperatorEntry): Fact[] {
  return note === undefined ? [] : [["note", printableLine(note)]];
}

/** One line to keep in a ticket or a log. */
export function changedLine(
  { key, record }: Pick<KnownKey, "key" | "record">,
  [state, reason, to]: readonly [state: string, reason: string, to: string],
  entry: OperatorEntry,
): string {
  const note = entry.note === undefined ? "" : `, note ${printable(JSON.stringify(entry.note))}`;
  const facts = `was ${state} (${printableLine(reason)}), is ${to}, ${nameOf(entry)}${note}`;
  return `${new Date(entry.at).toISOString()} ${shownKey(key)} at fence ${record.fence}: ${facts}\n`;
}

export function decisionJson({ reopened, ...decision }: ReleasedKey["decision"]): object {
  const decided = { ...decision, at: new Date(decision.at).toISOString() };
  return reopened === undefined
    ? decided
    : { ...decided, reopened: { ...reopened, at: new Date(reopened.at).toISOString() } };
}

const units: readonly (readonly [unit: string, ms: number])[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1000],
];

export function duration(ms: number): string {
  const [unit, unitMs] = units.find(([, size]) => ms >= 2 * size) ?? ["ms", 1];
  return `${Math.floor(ms / unitMs)} ${unit}`;
}

export function timeAgo(ms: number, nowMs: number): string {
  const time = new Date(ms)
    .toISOString()
    .replace("T", " ")
    .replace(/\.\d+Z$/, "Z");
  return nowMs - ms < 2000 ? `${time}, just now` : `${time}, ${duration(nowMs - ms)} ago`;
}

/** What waits for a decision, since when, why, and the commands that decide, with the store's flags. */
export function heldBlock(
  { key, record }: KeyEntry,
  described: Described | undefined,
  { io, storeFlags }: { readonly io: CommandIo; readonly storeFlags: readonly string[] },
): string {
  const facts = factLines(
    [
      ...descriptionFacts(described),
      ["begun", beginOf(record, io)],
      ["why", whyHeld(record, key)],
      ...decisionFacts(record, io),
      ["fence", String(record.fence)],
    ],
    "  ",
  );
  const { when } = wordingOf(key);
  const decide = (outcome: "done" | "released"): string => {
    const decision = `${keyWords(key)} --as ${outcome} --fence ${record.fence} --note '...'`;
    return `  ${when[outcome]}:\n    ${["countersign keys resolve", decision, ...storeFlags].join(" ")}\n`;
  };
  const title = createPaint(io.colours)("red", shownKey(key));
  return `${title}\n${facts}${decide("done")}${decide("released")}`;
}

export function heldSummary(count: number): string {
  return `
${count === 1 ? "1 key waits" : `${count} keys wait`} for a decision, and retries do nothing until then. Find out what
has happened (for money from the bank, not from a log), and run one of the commands.
`;
}
