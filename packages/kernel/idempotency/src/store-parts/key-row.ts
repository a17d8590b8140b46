import type { KeptDecision } from "../store.ts";
import { decodeText, operatorEntry, recordOf, releasedOf, type StoredRecord } from "../store-rules.ts";
import type { Row } from "./list-query.ts";

/** How long a released key keeps its fence: longer than any claim that has not seen the release can be under way. */
export const fenceMemoryMs = 86_400_000;

/** The numbers of a row, as the caller's driver returns them. */
interface RowNumbers extends Pick<StoredRecord, "fence" | "remainingMs"> {
  /** Reads a decision's fence, or milliseconds since 1970. */
  readonly integerOf: (value: unknown) => number;
}

/** Records of keys, as a store has them: read from a row, and given to callers. */
export const storedRecords = { ofRow: storedRecord, recordOf, releasedOf };

/**
 * The record of a row, from its columns `state`, `token`, `fingerprint` and `reason`: strings that `encodeText` made, never Buffers.
 * Likewise of the decision, if it has one: `decision` (the outcome), `decision_fence`, `decision_at`, `decision_by`, `decision_note`,
 * `decision_reason`, `reopened_at`, `reopened_by`, `reopened_note`; null for what there is not. Throws at an unknown state or outcome.
 */
function storedRecord(row: Row, { fence, remainingMs, integerOf }: RowNumbers): StoredRecord {
  const decision = decisionOf(row, integerOf);
  return {
    state: stateOf(row["state"]),
    token: decodeText(String(row["token"])),
    fence,
    fingerprint: decodeText(String(row["fingerprint"])),
    reason: decodeText(String(row["reason"])),
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

function stateOf(state: unknown): StoredRecord["state"] {
  if (state === "running" || state === "held" || state === "done" || state === "free") return state;
  throw new Error("the idempotency table holds an unknown state");
}
