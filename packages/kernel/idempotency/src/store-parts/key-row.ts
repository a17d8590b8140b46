import type { KeptDecision, OperatorEntry } from "../store.ts";
import type { KeyRow, SeenRow } from "../life.ts";
import { decodeText } from "../store-rules.ts";
import type { Row } from "./list-query.ts";

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
