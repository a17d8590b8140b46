import type { TransactionBegun, TransactionClaim, TransactionKey } from "@countersign/idempotency";
import { type Row, decodeText, encodeText } from "@countersign/idempotency/store";
import type { BeginCall } from "./begin-function.ts";
import { millisecondsOf } from "./queryable.ts";
import { digestNonce, encodeKey } from "./stored-key.ts";

export function byKey(one: TransactionKey, other: TransactionKey): number {
  return one.key < other.key ? -1 : 1;
}

/** The answers to keys that were asked in another order. */
export function inOrderOf(
  keys: readonly TransactionKey[],
  asked: readonly TransactionKey[],
  { nonce, keys: answers }: TransactionBegun,
): TransactionBegun {
  const answerOf = new Map(asked.map((key, place) => [key, answers[place]]));
  return { nonce, keys: keys.flatMap((key) => answerOf.get(key) ?? []) };
}

export function storedNonce(nonce: NonNullable<TransactionClaim["nonce"]>): NonNullable<BeginCall["nonce"]> {
  const digest = digestNonce(nonce.scope, nonce.nonce).toString("hex");
  return { digest, token: encodeText(nonce.token), retainMs: nonce.retainMs };
}

export function storedKey({ key, token, fingerprint }: TransactionKey): BeginCall["keys"][number] {
  return { key: encodeKey(key), token: encodeText(token), fingerprint: encodeText(fingerprint) };
}

/** The answer of the function, and the transaction's id where it was asked for. */
export function begunOf({ answer, id }: Row): TransactionBegun & { readonly id?: string } {
  if (typeof answer !== "string") throw new TypeError("the PostgreSQL driver returned no text for a text");
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- made by our own function
  const { nonce, keys } = JSON.parse(answer) as {
    readonly nonce: "fresh" | "seen";
    readonly keys: readonly Readonly<Record<string, unknown>>[];
  };
  return { nonce, keys: keys.map(keyBegunOf), ...(typeof id === "string" && { id }) };
}

function keyBegunOf({
  status,
  remainingSeconds,
  ...texts
}: Readonly<Record<string, unknown>>): TransactionBegun["keys"][number] {
  if (status === "begun") return { status };
  const fingerprint = decodeText(String(texts["fingerprint"]));
  if (status === "done") return { status, fingerprint };
  if (status === "held") return { status, fingerprint, reason: decodeText(String(texts["reason"])) };
  if (status === "in-flight") return { status, fingerprint, remainingMs: millisecondsOf(remainingSeconds) };
  throw new Error("the function of the idempotency table gave an unknown status");
}
