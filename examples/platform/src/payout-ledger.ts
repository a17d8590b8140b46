import type { Awaitable } from "@countersign/idempotency-guard";
import { z } from "zod";
import type { TransferOrder, TransferOutcome } from "./bank-rail.ts";
import type { Completion } from "./completion.ts";
import type { PayoutConfirmation } from "./confirmation.ts";
import type { Task } from "./outbox.ts";

/** A payout instruction that passed every check. */
export interface AcceptedPayout extends TransferOrder {
  readonly businessId: string;
  /** The body as signed: no digit of the amount is lost. */
  readonly instruction: string;
}

/** A row as shown by GET /inspect/payouts. */
type InspectedPayout = Readonly<z.infer<typeof inspectedRow>>;

/**
 * `known`: an earlier attempt has written the payout, and its answer was lost. `known-otherwise`: the same, but the earlier
 * instruction was another text.
 */
export type Acceptance = "accepted" | "known" | "known-otherwise";

/** The platform's own record of payouts. Each method is one transaction. */
export interface PayoutLedger {
  /**
   * Writes, through `completeKey` and before all else, the end of the idempotency key, then the payout and the task to execute it:
   * then a key that the ledger knows is an error. Without `completeKey`, for a store that shares no transaction with the ledger, the UNIQUE key of
   * the payouts alone decides, and a known key changes nothing.
   */
  accept(payout: AcceptedPayout, completeKey: Completion | undefined): Awaitable<Acceptance>;
  /** What a claimed transfer task has to execute; undefined when the payout is already settled. */
  order(idempotencyKey: string): Awaitable<TransferOrder | undefined>;
  /** Writes how the transfer ended, ends its task and adds the one that reports it. */
  settle(task: Task, outcome: TransferOutcome): Awaitable<void>;
  /** What a claimed confirmation task has to report. Throws when the payout is not settled. */
  confirmation(idempotencyKey: string): Awaitable<PayoutConfirmation>;
  inspect(): Awaitable<readonly InspectedPayout[]>;
  /** Throws when the database does not answer. */
  check(): Awaitable<void>;
}

/** The values of a payout, in the order of its statement, without the time. */
export function payoutValues(payout: AcceptedPayout): readonly (string | null)[] {
  const { idempotencyKey, businessId, beneficiary, reference, instruction } = payout;
  const { iban, bic, name } = beneficiary;
  return [idempotencyKey, businessId, iban, bic, name, reference ?? null, instruction];
}

/** What it means that the key of `payout` is in the ledger, by the row that is there. */
export function knownAs(row: unknown, payout: AcceptedPayout): Acceptance {
  return instructionRow.parse(row).instruction === payout.instruction ? "known" : "known-otherwise";
}

const instructionRow = z.object({ instruction: z.string() });

export const orderRow = z
  .object({
    idempotencyKey: z.string(),
    iban: z.string(),
    bic: z.string(),
    name: z.string(),
    reference: z.string().nullable(),
    instruction: z.string(),
  })
  .transform(({ iban, bic, name, reference, ...rest }): TransferOrder => {
    return { ...rest, beneficiary: { iban, bic, name }, reference: reference ?? undefined };
  });

// PostgreSQL gives 64-bit integers as texts.
const time = z.coerce.number();

export const settledRow = z
  .object({
    idempotencyKey: z.string(),
    businessId: z.string(),
    status: z.enum(["executed", "failed"]),
    reason: z.string().nullable(),
    settledAt: time,
  })
  .transform(({ reason, settledAt, ...rest }): PayoutConfirmation => {
    return { ...rest, reason: reason ?? undefined, settledAt: new Date(settledAt) };
  });

const isoTime = time.transform((milliseconds) => new Date(milliseconds).toISOString());

export const inspectedRow = z.object({
  idempotency_key: z.string(),
  business_id: z.string(),
  status: z.string(),
  status_reason: z.string().nullable(),
  created_at: isoTime,
  settled_at: isoTime.nullable(),
});
