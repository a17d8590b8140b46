import type { TransactionBegun } from "@countersign/idempotency";
import { decodeText, type Row } from "@countersign/idempotency/store";
import { integerOf, isTrue, storedText } from "./values.ts";

type KeyBegun = TransactionBegun["keys"][number];

/** Selects how a key stands, for {@link begunBy}. What is left is rounded up: of a live lease never to 0. */
export function standingColumns(now: string): string {
  return `state, fingerprint, reason, CEILING((until_us - ${now}) / 1000) AS remaining_ms`;
}

/** Answers by a row as a transaction's claim has left it. */
export function begunBy(row: Row | undefined): KeyBegun {
  if (row === undefined)
    throw new Error("mysql transaction store: the server answered without one of the keys");
  if (!isTrue(row["is_taken"])) return standingOf(row);
  if (row["state"] === "running") return { status: "begun" };
  throw new Error("mysql transaction store: a key was taken and is not running");
}

function standingOf(row: Row): KeyBegun {
  const fingerprint = decodeText(storedText(row["fingerprint"]));
  const { state } = row;
  if (state === "done") return { status: "done", fingerprint };
  if (state === "held") {
    return { status: "held", fingerprint, reason: decodeText(storedText(row["reason"])) };
  }
  if (state === "running") {
    return { status: "in-flight", fingerprint, remainingMs: integerOf(row["remaining_ms"]) };
  }
  throw new Error("a claim has left a key in a state that it does not know");
}
