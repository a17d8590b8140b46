import type {
  IdempotencyClaimResult,
  IdempotencyOwnership,
  IdempotencyRecord,
  ReleasedKey,
} from "@countersign/idempotency";
import {
  decodeText,
  encodeText,
  operatorEntry,
  storedRecords,
  type KeyRow,
} from "@countersign/idempotency/store";

// A client, a proxy or a damaged record can change a reply: anything unknown is an error, never a guess.

export function claimResult(reply: unknown): IdempotencyClaimResult {
  const [status, first, second, ...rest] = texts(reply);
  if (rest.length > 0) throw unexpected();
  if (status === "in-flight") return { status, fingerprint: text(first), remainingMs: above0(second) };
  if (status === "held") return { status, fingerprint: text(first), reason: text(second) };
  if (second !== undefined) throw unexpected();
  if (status === "acquired") return { status, fence: above0(first) };
  if (status === "done") return { status, fingerprint: text(first) };
  throw unexpected();
}

export function record(reply: unknown): IdempotencyRecord | undefined {
  const stored = storedOf(reply, ["running", "held", "done"]);
  if (stored === undefined) return undefined;
  const found = storedRecords.recordOf(stored);
  // The script never says that a done key is over: to believe half of it would free the key.
  if (found === undefined) throw unexpected();
  return found;
}

/** Undefined where nothing was decided about the free key. */
export function releasedKey(reply: unknown): ReleasedKey | undefined {
  return storedRecords.releasedOf(storedOf(reply, ["free"]));
}

function storedOf(reply: unknown, states: readonly KeyRow["state"][]): KeyRow | undefined {
  const [state, ...fields] = texts(reply);
  if (state === "absent" && fields.length === 0) return undefined;
  if (fields.length !== 5 && fields.length !== 14) throw unexpected();
  const decision = fields.length === 5 ? {} : { decision: decisionOf(fields.slice(5)) };
  return {
    state: oneOf(state, states),
    token: text(fields[0]),
    fence: above0(fields[1]),
    fingerprint: text(fields[2]),
    reason: text(fields[3]),
    remainingMs: integer(fields[4]),
    ...decision,
  };
}

function decisionOf([
  outcome,
  fence,
  at,
  by,
  note,
  reason,
  ...reopening
]: readonly string[]): ReleasedKey["decision"] {
  const kept = {
    ...entryOf(at, by, note),
    outcome: oneOf(outcome, ["done", "released"]),
    fence: above0(fence),
    reason: text(reason),
  };
  const [reopenedAt, reopenedBy, reopenedNote] = reopening;
  return reopenedAt === "" ? kept : { ...kept, reopened: entryOf(reopenedAt, reopenedBy, reopenedNote) };
}

// An empty text was not given.
function entryOf(at: string | undefined, by: string | undefined, note: string | undefined) {
  return operatorEntry({ by: text(by) || undefined, note: text(note) || undefined }, integer(at));
}

export function ownership(reply: unknown): IdempotencyOwnership {
  return oneOf(reply, ["ok", "lost"]);
}

/** Throws unless the reply is one of `expected`. */
export function oneOf<const Expected extends string>(
  reply: unknown,
  expected: readonly Expected[],
): Expected {
  const received = plain(reply);
  const found = expected.find((candidate) => candidate === received);
  if (found === undefined) throw unexpected();
  return found;
}

export function texts(reply: unknown): readonly string[] {
  if (!Array.isArray(reply)) throw unexpected();
  return reply.map(plain);
}

/** Reads a text, also from a client that gives bytes. */
export function plain(reply: unknown): string {
  if (typeof reply === "string") return reply;
  if (Buffer.isBuffer(reply)) return reply.toString("utf8");
  throw unexpected();
}

function text(stored: string | undefined): string {
  const decoded = stored === undefined ? undefined : storedText(stored);
  if (decoded === undefined) throw unexpected();
  return decoded;
}

/** Decodes a text; undefined for one that no store has written. */
export function storedText(stored: string): string | undefined {
  try {
    const decoded = decodeText(stored);
    return encodeText(decoded) === stored ? decoded : undefined;
  } catch {
    return undefined;
  }
}

function above0(written: string | undefined): number {
  const value = integer(written);
  if (value <= 0) throw unexpected();
  return value;
}

function integer(written: string | undefined): number {
  const value = written !== undefined && /^-?\d{1,16}$/.test(written) ? Number(written) : Number.NaN;
  if (!Number.isSafeInteger(value)) throw unexpected();
  return value;
}

export function unexpected(): Error {
  return new Error("Redis gave a reply that the stores do not know");
}
