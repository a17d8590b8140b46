import { createHash } from "node:crypto";
import { operatorEntry, type StoredRecord, decodeText, encodeText } from "@countersign/idempotency/store";
import type { KeptDecision } from "@countersign/idempotency";
import type { RowDataPacket } from "mysql2/promise";

/** The row of a key. */
export interface KeyRow {
  readonly state: "free" | "run" | "held" | "done";
  readonly token: string;
  readonly fence: number;
  readonly fingerprint: string;
  readonly reason: string;
  readonly untilUs: number;
}

/** A row as it was read, and when, by the engine's clock. */
export interface SeenRow extends KeyRow {
  readonly nowUs: number;
  /** An operator's last decision. No claim changes it, unless the row is over. */
  readonly decision: KeptDecision | undefined;
}

/** The columns that {@link seenRow} reads. */
export function columns(clock: string): string {
  return `name, state, token, fence, fingerprint, reason, until_us, ${clock} AS now_us,
  decision, decision_fence, decision_us, decision_by, decision_note, decision_reason, reopened_us, reopened_by, reopened_note`;
}

export function seenRow(row: RowDataPacket): SeenRow {
  return {
    state: stateOf(row["state"]),
    token: textOf(row["token"]),
    fence: Number(row["fence"]),
    fingerprint: textOf(row["fingerprint"]),
    reason: textOf(row["reason"]),
    untilUs: Number(row["until_us"]),
    nowUs: Number(row["now_us"]),
    decision: decisionOf(row),
  };
}

function decisionOf(row: RowDataPacket): KeptDecision | undefined {
  const outcome: unknown = row["decision"];
  if (outcome !== "done" && outcome !== "released") return undefined;
  const entry = (of: "decision" | "reopened") => {
    const given = { by: givenText(row[`${of}_by`]), note: givenText(row[`${of}_note`]) };
    return operatorEntry(given, Math.floor(Number(row[`${of}_us`]) / 1_000));
  };
  const kept = {
    ...entry("decision"),
    outcome,
    fence: Number(row["decision_fence"]),
    reason: textOf(row["decision_reason"]),
  } as const;
  return row["reopened_us"] === null ? kept : { ...kept, reopened: entry("reopened") };
}

function givenText(bytes: unknown): string | undefined {
  return bytes === null ? undefined : textOf(bytes);
}

/** The row as the state machine of `@countersign/idempotency` takes it. */
export function storedOf({ untilUs, nowUs, ...rest }: SeenRow): StoredRecord {
  // Rounded up, so that what is left of a live lease is never 0; and not the -0 to which a negative fraction is rounded.
  return { ...rest, remainingMs: Math.ceil((untilUs - nowUs) / 1_000) + 0 };
}

/** What a text is bound as. Bytes: a string would pass through the character set of the connection, which may be the caller's. */
export function bytesOf(text: string): Buffer {
  return Buffer.from(encodeText(text), "utf8");
}

/** The inverse of {@link bytesOf}. */
export function textOf(bytes: unknown): string {
  if (!Buffer.isBuffer(bytes)) throw new Error("MariaDB returned no bytes where there are always some");
  return decodeText(bytes.toString("utf8"));
}

/** By what a row is found. The lengths keep two texts apart that are one when joined; UTF-16 keeps what UTF-8 has no bytes for. */
export function digestOf(...texts: readonly string[]): Buffer {
  const hash = createHash("sha256");
  for (const text of texts) hash.update(`${text.length} `).update(text, "utf16le");
  return hash.digest();
}

function stateOf(state: unknown): KeyRow["state"] {
  if (state === "free" || state === "run" || state === "held" || state === "done") return state;
  throw new Error("the table of keys holds an unknown state");
}
