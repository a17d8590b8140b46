import type { IdempotencyRecord, KeptDecision } from "@countersign/idempotency";

/** What the reference knows of a key. */
export interface Cell {
  /** `free`: absent, but for what an operator has decided. */
  state: IdempotencyRecord["state"] | "free";
  /** Undefined from a decision until an answer has shown it: any that is not the old owner's. */
  token: string | undefined;
  /** From whom an operator has taken the key. */
  formerToken: string | undefined;
  /** Undefined until an answer has shown it: fences are free but for their order. */
  fence: number | undefined;
  fingerprint: string;
  reason: string;
  decision: Decided | undefined;
  /** The end of the lease or of the retention: the first instant at which it has ended. */
  untilMs: number;
}

/** Without its fence: that of the cell when it was decided. Times are the reference's. */
export type Decided = Omit<KeptDecision, "fence"> & { readonly fence: number | undefined };
