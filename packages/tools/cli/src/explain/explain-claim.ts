import { begunAtMs } from "@countersign/idempotency/internal";
import { leaseExpired } from "@countersign/idempotency/store";
import type { IdempotencyRecord } from "@countersign/idempotency";
import { explanation, quoted, type Explanation } from "./explanation.ts";

export interface ExplainedClaim {
  readonly key: string;
  readonly record: IdempotencyRecord | undefined;
  /** Milliseconds since 1970; default now. */
  readonly nowMs?: number | undefined;
}

/** Says who holds an idempotency key, since when, and what to do. Shows no token and no fingerprint. */
export function explainClaim({ key, record, nowMs = Date.now() }: ExplainedClaim): Explanation {
  const name = quoted(key);
  if (record === undefined) {
    const sentence = `Nobody holds ${name}, or its retention has ended: the next request with it is handled.`;
    return explanation(["claim-free", sentence], undefined);
  }
  const since = sinceWhen(record.fence, nowMs);
  const [what, sentence, code] = stateOf(name, record, since);
  return explanation([what, sentence], code);
}

function stateOf(
  name: string,
  record: IdempotencyRecord,
  since: string,
): readonly [what: string, sentence: string, code?: string] {
  switch (record.state) {
    case "done":
      return ["claim-done", `Do not send it again: ${endedBy(name, record, since)}.`, "already-processed"];
    case "held": {
      const { reason } = record;
      const why =
        reason === leaseExpired ? "whose process died or stood still" : `for the reason ${quoted(reason)}`;
      const held = `${name} is held for an operator since its attempt${since}, ${why}`;
      return [
        "claim-held",
        `Look for the payment, then decide by countersign keys resolve: ${held}.`,
        "held",
      ];
    }
    case "running": {
      const seconds = Math.ceil(Math.abs(record.remainingMs) / 1000);
      const works = `an attempt${since} works on ${name}, and its lease lasts ${seconds} s more unless it is renewed`;
      const ended = `the attempt${since} that works on ${name} has not renewed its lease, which ended ${seconds} s ago`;
      return record.remainingMs > 0
        ? ["claim-running", `Wait and send it again: ${works}.`, "in-flight"]
        : ["claim-lease-ended", `Send it again, or look for the process that died: ${ended}.`, "in-flight"];
    }
    default:
      return ["claim-unknown", `Look at ${name} in the store: its record has no known state.`];
  }
}

function endedBy(name: string, { decision, fence }: IdempotencyRecord, since: string): string {
  if (decision?.fence !== fence) return `the payment of ${name} has been made by the attempt${since}`;
  const by = decision.by === undefined ? "" : ` by ${quoted(decision.by)}`;
  const at = new Date(decision.at).toISOString();
  return `an operator has declared the payment of ${name} as made${by}, at ${at}`;
}

function sinceWhen(fence: number, nowMs: number): string {
  const begunAt = begunAtMs(fence, nowMs);
  if (begunAt === undefined) return ` with the fence ${fence}`;
  const seconds = Math.max(0, Math.round((nowMs - begunAt) / 1000));
  return ` that began at ${new Date(begunAt).toISOString()}, ${seconds} s ago`;
}
