import { decodeText, encodeText, parseDecision, type SeenRow } from "@countersign/idempotency/store";

// A client, a proxy or a damaged record can change a reply: anything unknown is an error, never a guess.

const states = ["running", "held", "done", "free"] as const;
const recoveries = ["hold", "rerun"] as const;

/** The row of a key; undefined where there is none. */
export function rowOf(reply: unknown): SeenRow | undefined {
  const [state, ...fields] = texts(reply);
  if (state === "absent" && fields.length === 0) return undefined;
  if (fields.length !== 9) throw unexpected();
  const [token, fence, fingerprint, reason, remainingMs, version, nowMs, recovery, decision] = fields;
  return {
    state: oneOf(state, states),
    token: text(token),
    fence: above0(fence),
    fingerprint: text(fingerprint),
    reason: text(reason),
    recovery: oneOf(recovery, recoveries),
    remainingMs: integer(remainingMs),
    version: above0(version),
    nowMs: integer(nowMs),
    ...(decision === "" ? {} : { decision: parseDecision(decision) }),
  };
}

/** The fence of the added row, or the row that was there. */
export function addedOf(reply: unknown): number | SeenRow {
  if (!Array.isArray(reply)) return above0(plain(reply));
  const row = rowOf(reply);
  if (row === undefined) throw unexpected();
  return row;
}

/** The fence that a write left; undefined where nothing was written. */
export function fenceOf(reply: unknown): number | undefined {
  const written = plain(reply);
  return written === "changed" ? undefined : above0(written);
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
