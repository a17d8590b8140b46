import type {
  IdempotencyClaimResult,
  IdempotencyOwnership,
  IdempotencyRecord,
} from "@countersign/idempotency-guard";
import { decodeText } from "@countersign/store-core";

// Whatever a client, a proxy or a damaged record makes of a reply: it is one of these or an error, never a guess.

/** The reply to a claim. */
export function claimResult(reply: unknown): IdempotencyClaimResult {
  const [status, ...fields] = texts(reply);
  if (status === "acquired") return { status, fence: integer(fields[0]) };
  if (status === "done") return { status, fingerprint: text(fields[0]) };
  if (status === "in-flight") {
    return { status, fingerprint: text(fields[0]), remainingMs: integer(fields[1]) };
  }
  if (status === "held") return { status, fingerprint: text(fields[0]), reason: text(fields[1]) };
  throw unexpected();
}

/** The reply to a read; undefined for an absent key. */
export function record(reply: unknown): IdempotencyRecord | undefined {
  const [state, ...fields] = texts(reply);
  if (state === "absent") return undefined;
  const owner = { token: text(fields[0]), fence: integer(fields[1]), fingerprint: text(fields[2]) };
  if (state === "run") return { state, ...owner, remainingMs: integer(fields[4]) };
  if (state === "done") return { state, ...owner };
  if (state === "held") return { state, ...owner, reason: text(fields[3]) };
  throw unexpected();
}

export function ownership(reply: unknown): IdempotencyOwnership {
  return oneOf(reply, ["ok", "lost"]);
}

/** The reply, when it is one of `expected`. */
export function oneOf<const Expected extends string>(
  reply: unknown,
  expected: readonly Expected[],
): Expected {
  const received = plain(reply);
  const found = expected.find((candidate) => candidate === received);
  if (found === undefined) throw unexpected();
  return found;
}

/** The elements of an array of texts. */
export function texts(reply: unknown): readonly string[] {
  if (!Array.isArray(reply)) throw unexpected();
  return reply.map(plain);
}

/** A text, also from a client that gives bytes. */
export function plain(reply: unknown): string {
  if (typeof reply === "string") return reply;
  if (Buffer.isBuffer(reply)) return reply.toString("utf8");
  throw unexpected();
}

function text(stored: string | undefined): string {
  if (stored === undefined) throw unexpected();
  return decodeText(stored);
}

function integer(written: string | undefined): number {
  const value = written !== undefined && /^-?\d{1,16}$/.test(written) ? Number(written) : Number.NaN;
  if (!Number.isSafeInteger(value)) throw unexpected();
  return value;
}

function unexpected(): Error {
  return new Error("Redis gave a reply that the stores do not know");
}
