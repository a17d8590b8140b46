import { begunAtMs, leaseExpired, type IdempotencyRecord } from "@countersign/idempotency";
import { explanation, quoted, type Explanation } from "./explanation.ts";

/** A key of an idempotency store, as `store.read()` gives it. */
export interface ExplainedClaim {
  readonly key: string;
  /** Undefined when the store has no record of it. */
  readonly record: IdempotencyRecord | undefined;
  /** The digest of the payload that came again, where it is known: a second payment under one key differs in it. */
  readonly fingerprint?: string | undefined;
  /** Milliseconds since 1970; default now. */
  readonly nowMs?: number | undefined;
}

/** Says who holds an idempotency key, since when, and what to do about it. Shows no token and no fingerprint. */
export function explainClaim({ key, record, fingerprint, nowMs = Date.now() }: ExplainedClaim): Explanation {
  const name = quoted(key);
  if (record === undefined) {
    return explanation(
      "claim-free",
      undefined,
      `Send the request: nobody holds ${name}, or its retention has ended.`,
    );
  }
  const since = sinceWhen(record.fence, nowMs);
  const details =
    fingerprint === undefined || fingerprint === record.fingerprint
      ? []
      : [
          "The payload is another one than that of the attempt that has the key: use a key of its own for it.",
        ];
  switch (record.state) {
    case "done":
      return explanation(
        "claim-done",
        "already-processed",
        record.decision?.fence === record.fence
          ? `Do not send it again: an operator has declared the payment of ${name} as made${byText(record.decision.by)}, at ${new Date(record.decision.at).toISOString()}.`
          : `Do not send it again: the payment of ${name} has been made by the attempt${since}.`,
        details,
      );
    case "held":
      return explanation(
        "claim-held",
        "held",
        `Look for the payment, then decide by countersign keys resolve: ${name} is held for an operator since its attempt${since}, ${reasonText(record.reason)}.`,
        details,
      );
    case "run":
      return record.remainingMs > 0
        ? explanation(
            "claim-running",
            "in-flight",
            `Wait and send it again: an attempt${since} works on ${name}, and its lease lasts ${Math.ceil(record.remainingMs / 1000)} s more unless it is renewed.`,
            details,
          )
        : explanation(
            "claim-lease-ended",
            "in-flight",
            `Send it again, or look for the process that died: the attempt${since} that works on ${name} has not renewed its lease, which ended ${Math.ceil(-record.remainingMs / 1000)} s ago.`,
            details,
          );
    default:
      return explanation(
        "claim-unknown",
        undefined,
        `Look at ${name} in the store: its record has no known state.`,
      );
  }
}

function byText(by: string | undefined): string {
  return by === undefined ? "" : ` by ${quoted(by)}`;
}

function reasonText(reason: string): string {
  return reason === leaseExpired ? "whose process died or stood still" : `for the reason ${quoted(reason)}`;
}

function sinceWhen(fence: number, nowMs: number): string {
  const begunAt = begunAtMs(fence, nowMs);
  if (begunAt === undefined) return ` with the fence ${fence}`;
  const seconds = Math.max(0, Math.round((nowMs - begunAt) / 1000));
  return ` that began at ${new Date(begunAt).toISOString()}, ${seconds} s ago`;
}
