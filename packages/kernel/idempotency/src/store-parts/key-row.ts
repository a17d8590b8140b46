import type { KeptDecision, OperatorEntry } from "../store.ts";
import { operatorEntry, recordOf, releasedOf, type KeyRow, type SeenRow } from "../life.ts";
import { decodeText } from "../store-rules.ts";
import type { Row } from "./list-query.ts";

/** The numbers of a row, as the caller's driver returns them. */
interface RowNumbers extends Pick<KeyRow, "fence" | "remainingMs"> {
  /** Reads a decision's fence, or milliseconds since 1970. */
  readonly integerOf: (value: unknown) => number;
}

/** Records of keys, as a store has them: read from a row, and given to callers. */
export const storedRecords = { ofRow: storedRecord, recordOf, releasedOf };

/**
 * The record of a row, from its columns `state`, `recovery`, `token`, `fingerprint` and `reason`, the last three strings that `encodeText`
 * made, never Buffers. Likewise of the decision, if it has one: `decision` (the outcome), `decision_fence`, `decision_at`, `decision_by`, `decision_note`,
 * `decision_reason`, `reopened_at`, `reopened_by`, `reopened_note`; null for what there is not. Throws at an unknown state or outcome.
 */
function storedRecord(row: Row, { fence, remainingMs, integerOf }: RowNumbers): KeyRow {
  const decision = decisionOf(row, integerOf);
  return {
    state: stateOf(row["state"]),
    token: decodeText(String(row["token"])),
    fence,
    fingerprint: decodeText(String(row["fingerprint"])),
    reason: decodeText(String(row["reason"])),
    recovery: recoveryOf(row["recovery"]),
    remainingMs,
    ...(decision === undefined ? {} : { decision }),
  };
}

function decisionOf(row: Row, integerOf: RowNumbers["integerOf"]): KeptDecision | undefined {
  const outcome = row["decision"] ?? undefined;
  if (outcome === undefined) return undefined;
  if (outcome !== "done" && outcome !== "released") {
    throw new Error("the idempotency table holds an unknown decision");
  }
  const entry = (of: "decision" | "reopened") =>
    operatorEntry(
      { by: textOf(row[`${of}_by`]), note: textOf(row[`${of}_note`]) },
      integerOf(row[`${of}_at`]),
    );
  const fence = integerOf(row["decision_fence"]);
  const reason = textOf(row["decision_reason"]) ?? "";
  const kept = { ...entry("decision"), outcome, fence, reason } as const;
  return (row["reopened_at"] ?? undefined) === undefined ? kept : { ...kept, reopened: entry("reopened") };
}

function textOf(stored: unknown): string | undefined {
  return typeof stored === "string" ? decodeText(stored) : undefined;
}

function stateOf(state: unknown): KeyRow["state"] {
  if (state === "running" || state === "held" || state === "done" || state === "free") return state;
  throw new Error("the idempotency table holds an unknown state");
}

function recoveryOf(recovery: unknown): KeyRow["recovery"] {
  if (recovery === "hold" || recovery === "rerun") return recovery;
  throw new Error("the idempotency table holds an unknown recovery");
}

/** The numbers of a {@link SeenRow}, as the caller's driver returns them. */
type SeenNumbers = Pick<SeenRow, "fence" | "version" | "remainingMs" | "nowMs">;

/**
 * The row of a key from its columns `state`, `recovery`, `token`, `fingerprint` and `reason`, the last three strings that `encodeText` made,
 * and `decision`, which is JSON or null. Throws at an unknown state, recovery or decision.
 */
export function seenRow(row: Row, numbers: SeenNumbers): SeenRow {
  const decision = row["decision"] ?? undefined;
  return {
    state: stateOf(row["state"]),
    token: decodeText(String(row["token"])),
    fingerprint: decodeText(String(row["fingerprint"])),
    reason: decodeText(String(row["reason"])),
    recovery: recoveryOf(row["recovery"]),
    ...numbers,
    ...(decision === undefined ? {} : { decision: parseDecision(decision) }),
  };
}

/** Reads a decision that was stored as JSON. Throws where it is damaged: half of a decision is no proof of who decided what. */
export function parseDecision(stored: unknown): KeptDecision {
  const value: unknown = typeof stored === "string" ? parseJson(stored) : undefined;
  if (!isDecision(value)) throw new Error("the idempotency table holds an unknown decision");
  return value;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isDecision(value: unknown): value is KeptDecision {
  if (!isEntry(value)) return false;
  const { outcome, fence, reason, reopened }: { [Name in keyof KeptDecision]?: unknown } = value;
  const isOutcome = outcome === "done" || outcome === "released";
  return (
    isOutcome &&
    Number.isSafeInteger(fence) &&
    typeof reason === "string" &&
    (reopened === undefined || isEntry(reopened))
  );
}

function isEntry(value: unknown): value is OperatorEntry {
  if (typeof value !== "object" || value === null) return false;
  const { at, by = "", note = "" }: { [Name in keyof OperatorEntry]?: unknown } = value;
  return Number.isSafeInteger(at) && typeof by === "string" && typeof note === "string";
}
