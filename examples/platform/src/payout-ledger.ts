import { withImmediateTransaction } from "@countersign/store-sqlite";
import { z } from "zod";
import type { TransferOrder, TransferOutcome } from "./bank-rail.ts";
import type { PayoutConfirmation } from "./confirmation.ts";
import type { PlatformDatabase } from "./database.ts";
import type { Outbox, Task } from "./outbox.ts";

/** A payout instruction that passed every check. */
export interface AcceptedPayout extends TransferOrder {
  readonly businessId: string;
  /** The body as signed: no digit of the amount is lost. */
  readonly instruction: string;
}

/** A row as shown by GET /inspect/payouts. */
type InspectedPayout = Readonly<z.infer<typeof inspectedRow>>;

/** The platform's own record of payouts. Each method is one transaction. */
export interface PayoutLedger {
  /**
   * Writes the payout, the task to execute it and, through `completeKey`, the end of its idempotency key.
   * When `completeKey` throws, nothing of it has happened.
   */
  accept(payout: AcceptedPayout, completeKey: (transaction: PlatformDatabase) => unknown): void;
  /** What a claimed transfer task has to execute; undefined when the payout is already settled. */
  order(idempotencyKey: string): TransferOrder | undefined;
  /** Writes how the transfer ended, ends its task and adds the one that reports it. */
  settle(task: Task, outcome: TransferOutcome): void;
  /** What a claimed confirmation task has to report. Throws when the payout is not settled. */
  confirmation(idempotencyKey: string): PayoutConfirmation;
  inspect(): readonly InspectedPayout[];
}

/** `now` gives milliseconds since 1970. */
export function createPayoutLedger(
  database: PlatformDatabase,
  outbox: Outbox,
  now: () => number,
): PayoutLedger {
  const insert = database.prepare(`
    INSERT INTO payouts (idempotency_key, business_id, iban, bic, beneficiary_name, reference, instruction, status, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, 'accepted', ?)`);
  const selectOrder = database.prepare(`
    SELECT idempotency_key AS idempotencyKey, iban, bic, beneficiary_name AS name, reference, instruction
    FROM payouts WHERE idempotency_key = ? AND status = 'accepted'`);
  const update = database.prepare(`
    UPDATE payouts SET status = ?, status_reason = ?, settled_at = ?
    WHERE idempotency_key = ? AND status = 'accepted'`);
  const selectSettled = database.prepare(`
    SELECT idempotency_key AS idempotencyKey, business_id AS businessId, status, status_reason AS reason, settled_at AS settledAt
    FROM payouts WHERE idempotency_key = ? AND status <> 'accepted'`);
  const selectAll = database.prepare(`
    SELECT idempotency_key, business_id, status, status_reason, created_at, settled_at
    FROM payouts ORDER BY created_at, rowid`);
  return {
    accept(payout, completeKey) {
      withImmediateTransaction(database, (transaction) => {
        const { idempotencyKey, businessId, beneficiary, reference, instruction } = payout;
        const { iban, bic, name } = beneficiary;
        const createdAt = now();
        insert.run(idempotencyKey, businessId, iban, bic, name, reference ?? null, instruction, createdAt);
        outbox.add("transfer", idempotencyKey, createdAt);
        // Returned, so that a promise is refused: COMMIT would not wait for it.
        return completeKey(transaction);
      });
    },
    order: (idempotencyKey) => orderRow.optional().parse(selectOrder.all(idempotencyKey)[0]),
    settle(task, outcome) {
      withImmediateTransaction(database, () => {
        const settledAt = now();
        update.run(outcome.status, outcome.reason ?? null, settledAt, task.idempotencyKey);
        outbox.finish(task.id);
        outbox.add("confirmation", task.idempotencyKey, settledAt);
      });
    },
    confirmation: (idempotencyKey) => settledRow.parse(selectSettled.all(idempotencyKey)[0]),
    inspect: () => selectAll.all().map((row) => inspectedRow.parse(row)),
  };
}

const orderRow = z
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

const settledRow = z
  .object({
    idempotencyKey: z.string(),
    businessId: z.string(),
    status: z.enum(["executed", "failed"]),
    reason: z.string().nullable(),
    settledAt: z.number(),
  })
  .transform(({ reason, settledAt, ...rest }): PayoutConfirmation => {
    return { ...rest, reason: reason ?? undefined, settledAt: new Date(settledAt) };
  });

const isoTime = z.number().transform((time) => new Date(time).toISOString());

const inspectedRow = z.object({
  idempotency_key: z.string(),
  business_id: z.string(),
  status: z.string(),
  status_reason: z.string().nullable(),
  created_at: isoTime,
  settled_at: isoTime.nullable(),
});
