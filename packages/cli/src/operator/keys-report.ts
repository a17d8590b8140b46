import type { IdempotencyListing, IdempotencyRecord } from "@countersign/idempotency";
import { createPaint, type Paint } from "../paint.ts";
import { printable } from "../printable.ts";
import { jsonLine, shownKey } from "./key-text.ts";

/** A key and what the store knows of it. */
export type KeyEntry = IdempotencyListing["entries"][number];

/** Prints keys as they come: fixed widths, so that lines of later pages stand in their columns. */
export interface KeysReport {
  readonly head: string;
  readonly line: (entry: KeyEntry) => string;
}

const widths = [36, 5, 16, 12];
const shortFingerprint = 12;

/** The keys as a table for people. */
export function keysTable(colours: boolean): KeysReport {
  const paint = createPaint(colours);
  return {
    head: paint("bold", row(["key", "state", "fence", "fingerprint", "what is known"])),
    line: ({ key, record }) => paintState(paint, record, keyRow(key, record)),
  };
}

/** The keys as JSON, one document in each line. */
export const keysJson: KeysReport = {
  head: "",
  line: ({ key, record }) => jsonLine({ key, ...shownRecord(record) }),
};

/** What is shown of a record: not the token, with which a stranger could end the attempt. */
export function shownRecord(record: IdempotencyRecord): object {
  const { token: _token, ...shown } = record;
  return shown;
}

/** Why the key is in its state, in one line. */
export function explainRecord(record: IdempotencyRecord): string {
  if (record.state === "held") return printable(record.reason.replaceAll(/\s+/g, " "));
  if (record.state === "done") return "processed";
  const { remainingMs } = record;
  return remainingMs > 0
    ? `lease ends in ${duration(remainingMs)}`
    : `lease expired ${duration(-remainingMs)} ago`;
}

/** The beginning of a fingerprint, enough to compare by eye. */
export function shortened(fingerprint: string): string {
  return printable(fingerprint.slice(0, shortFingerprint));
}

/** Whether an operator has to decide. */
export function isUndecided(record: IdempotencyRecord): boolean {
  return record.state === "held" || (record.state === "run" && record.remainingMs <= 0);
}

function keyRow(key: string, record: IdempotencyRecord): string {
  const { state, fence, fingerprint } = record;
  return row([shownKey(key), state, String(fence), shortened(fingerprint), explainRecord(record)]);
}

function paintState(paint: Paint, record: IdempotencyRecord, text: string): string {
  if (isUndecided(record)) return paint("red", text);
  return record.state === "done" ? paint("green", text) : text;
}

function row(cells: readonly string[]): string {
  return `${cells
    .map((cell, at) => cell.padEnd(widths[at] ?? 0))
    .join("  ")
    .trimEnd()}\n`;
}

const units: readonly (readonly [unit: string, ms: number])[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1000],
];

function duration(ms: number): string {
  const [unit, unitMs] = units.find(([, size]) => ms >= 2 * size) ?? ["ms", 1];
  return `${Math.floor(ms / unitMs)} ${unit}`;
}
