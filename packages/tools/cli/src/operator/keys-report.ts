import { begunAtMs, isFailureCount } from "@countersign/idempotency/door";
import type { CommandIo } from "../command-io.ts";
import { jsonLine } from "../json-output.ts";
import { createPaint } from "../paint.ts";
import { printable } from "../printable.ts";
import { tableFor, type Column } from "../table.ts";
import { duration, timeAgo } from "./begun-at.ts";
import { decisionFacts, decisionJson, decisionMarks, oneLineOf } from "./decision-report.ts";
import { descriptionLines, type Described } from "./describe-key.ts";
import { shownKey } from "./key-text.ts";
import { isDecided, shownRecord, type KeyEntry, type KnownRecord } from "./known-record.ts";

const shortFingerprint = 12;

const columns: readonly Column[] = [
  { title: "key", whole: true },
  { title: "state", whole: true },
  { title: "fence", whole: true },
  { title: "fingerprint" },
  { title: "what is known" },
];

/** Keys as a table for people. */
export function keysTable(entries: readonly KeyEntry[], io: CommandIo): string {
  const paint = createPaint(io.colours);
  const rows = entries.map(({ key, record }) => [
    shownKey(key),
    record.state,
    String(record.fence),
    shortened(record.fingerprint),
    isFailureCount(key, record) ? "counts a failed attempt of an event" : explainRecord(record),
  ]);
  const { head, row } = tableFor(columns, rows, io.columns);
  const lines = rows.map((cells, at) => {
    const { record } = entries[at] ?? {};
    const text = row(cells).trimEnd();
    if (record === undefined || record.state === "run") return `${text}\n`;
    // An operator's done is no payment that anybody here has made.
    const done = isDecided(record) ? "yellow" : "green";
    return `${paint(record.state === "done" ? done : "red", text)}\n`;
  });
  return (head === "" ? "" : `${paint("bold", head.trimEnd())}\n`) + lines.join("");
}

/** A key as one JSON document in a line. */
export function keyJson(
  { key, record }: { readonly key: string; readonly record: KnownRecord },
  io: CommandIo,
  more: object = {},
): string {
  const begunAt = begunAtMs(record.fence, io.clock() * 1000);
  return jsonLine({
    key,
    ...recordJson(record),
    begunAt: begunAt === undefined ? null : new Date(begunAt).toISOString(),
    ...more,
  });
}

/** All that is known of one key. */
export interface KnownKey {
  readonly key: string;
  readonly record: KnownRecord;
  readonly described: Described | undefined;
  /** The store as messages name it. */
  readonly store: string;
}

/** The facts of one key, for people; before a decision the beginning of its fingerprint is enough. */
export function keyFacts(
  { key, record, described, store }: KnownKey,
  io: CommandIo,
  fingerprint: string = printable(record.fingerprint),
): (readonly [name: string, text: string])[] {
  const facts = [
    ["store", store],
    ["key", shownKey(key)],
    ...descriptionLines(described),
    ["begun", beginOf(record, io)],
    ["state", `${record.state}: ${explainState(record)}`],
    ["fence", String(record.fence)],
    ["fingerprint", fingerprint],
    ...decisionFacts(record, io),
  ] as const;
  return facts.map(([name, text]) => [name.padEnd(11), text]);
}

/** When the attempt began, for people. */
export function beginOf({ fence }: KnownRecord, io: CommandIo): string {
  const nowMs = io.clock() * 1000;
  const ms = begunAtMs(fence, nowMs);
  return ms === undefined ? "unknown: the fences of this store are no times" : timeAgo(ms, nowMs);
}

/** What is shown of a record, for JSON: the times of a decision are text. */
export function recordJson(record: KnownRecord): object {
  const { decision } = record;
  return decision === undefined
    ? shownRecord(record)
    : { ...shownRecord(record), decision: decisionJson(decision) };
}

/** Why the key is in its state, and what an operator has decided about it, in one line. */
function explainRecord(record: KnownRecord): string {
  const marks = [explainState(record), ...decisionMarks(record)];
  return marks.join("; ");
}

/** The same without what an operator has decided. */
export function explainState(record: KnownRecord): string {
  if (record.state === "held") return oneLineOf(record.reason);
  if (record.state === "free") return "the next claim takes it";
  if (record.state === "done") return isDecided(record) ? "declared as paid" : "processed";
  const { remainingMs } = record;
  return remainingMs > 0
    ? `lease ends in ${duration(remainingMs)}`
    : `lease expired ${duration(-remainingMs)} ago`;
}

/** The beginning of a fingerprint, enough to compare by eye. */
export function shortened(fingerprint: string): string {
  return printable(fingerprint.slice(0, shortFingerprint));
}
