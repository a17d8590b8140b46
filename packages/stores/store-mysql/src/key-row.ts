import type { IdempotencyClaimResult, TransactionBegun } from "@countersign/idempotency";
import { decodeText, storedRecords, type Row, type KeyRow } from "@countersign/idempotency/store";
import { integerOf, isTrue, storedText } from "./values.ts";

const texts = ["token", "fingerprint", "reason"];
const decisionTexts = ["decision_by", "decision_note", "decision_reason", "reopened_by", "reopened_note"];
const instants = ["decision", "reopened"];

/** Selects how a key stands, for {@link storedOf}: all but an operator's decision. `of` is the table's alias with its dot. */
export function standingColumns(now: string, of = ""): string {
  const columns = ["state", "fence", "recovery", ...texts].map((column) => of + column);
  // Rounded up: what is left of a live lease is never 0.
  return [...columns, `CEILING((${of}until_us - ${now}) / 1000) AS remaining_ms`].join(", ");
}

/** Selects all that {@link storedOf} reads. */
export function keyColumns(now: string, of = ""): string {
  const columns = ["decision", "decision_fence", ...decisionTexts].map((column) => of + column);
  const times = instants.map((name) => `${of}${name}_us DIV 1000 AS ${name}_at`);
  return [standingColumns(now, of), ...columns, ...times].join(", ");
}

export function storedOf(row: Row): KeyRow {
  const decided = decisionTexts.filter((name) => (row[name] ?? undefined) !== undefined);
  const read = [...texts, ...decided].map((name) => [name, storedText(row[name])] as const);
  return storedRecords.ofRow(
    { ...row, ...Object.fromEntries(read) },
    { fence: integerOf(row["fence"]), remainingMs: integerOf(row["remaining_ms"]), integerOf },
  );
}

/** Answers by a row as a claim has left it, which this claim has not taken. */
export function standingOf(row: Row): Exclude<IdempotencyClaimResult, { readonly status: "acquired" }> {
  const { state, fingerprint, reason, remainingMs } = storedOf(row);
  if (state === "done") return { status: "done", fingerprint };
  if (state === "held") return { status: "held", fingerprint, reason };
  if (state === "running") return { status: "in-flight", fingerprint, remainingMs };
  throw new Error("a claim has left a free key");
}

/** The key itself. */
export function nameOf(row: Row): string {
  return decodeText(storedText(row["name"]));
}

export function begunBy(row: Row | undefined): TransactionBegun["keys"][number] {
  if (row === undefined)
    throw new Error("mysql transaction store: the server answered without one of the keys");
  if (!isTrue(row["is_taken"])) return standingOf(row);
  if (row["state"] === "running") return { status: "begun" };
  throw new Error("mysql transaction store: a key was taken and is not running");
}
