import type { Awaitable } from "@countersign/idempotency";
import { z } from "zod";
import type { TransferOrder, TransferOutcome } from "../workers/bank-rail.ts";
import type { PayoutConfirmation } from "../workers/confirmation.ts";
import type { Completion, LedgerDatabase, SqlDialect } from "./database.ts";
import { outboxStatements, type Task } from "./outbox.ts";

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
   * then a key that the ledger knows is an error. Without `completeKey`, for a store that shares no transaction with the
   * ledger, the UNIQUE key of the payouts alone decides, and a known key changes nothing.
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

export function payoutLedgerOn(database: LedgerDatabase): PayoutLedger {
  const payouts = payoutStatements(database.dialect);
  const tasks = outboxStatements(database.dialect);
  return {
    accept(payout, completeKey) {
      const { idempotencyKey, businessId, beneficiary, reference = null, instruction } = payout;
      const { iban, bic, name } = beneficiary;
      const insert = completeKey === undefined ? payouts.insertUnlessKnown : payouts.insert;
      return database.transaction(function* () {
        const now = database.now();
        const row = [idempotencyKey, businessId, iban, bic, name, reference, instruction, now];
        const inserted = yield [insert, ...row];
        if (inserted.length === 0) {
          const [known] = yield [payouts.selectInstruction, idempotencyKey];
          return instructionRow.parse(known).instruction === instruction ? "known" : "known-otherwise";
        }
        yield [tasks.add, "transfer", idempotencyKey, now];
        return "accepted";
      }, completeKey);
    },
    order: (idempotencyKey) =>
      database.run(function* () {
        const [row] = yield [payouts.selectOrder, idempotencyKey];
        return orderRow.optional().parse(row);
      }),
    settle: (task, { status, reason = null }) =>
      database.transaction(function* () {
        const now = database.now();
        yield [payouts.settle, status, reason, now, task.idempotencyKey];
        yield [tasks.finish, task.id];
        yield [tasks.add, "confirmation", task.idempotencyKey, now];
      }),
    confirmation: (idempotencyKey) =>
      database.run(function* () {
        const [row] = yield [payouts.selectSettled, idempotencyKey];
        return settledRow.parse(row);
      }),
    inspect: () =>
      database.run(function* () {
        const rows = yield [payouts.selectAll];
        return rows.map((row) => inspectedRow.parse(row));
      }),
    check: () =>
      database.run(function* () {
        yield ["SELECT 1"];
      }),
  };
}

/** The statements, each with the names of its values in their order. */
export function payoutStatements({ schema, now }: SqlDialect) {
  const payouts = `${schema}payouts`;
  const insert = `
    INSERT INTO ${payouts} (idempotency_key, business_id, iban, bic, beneficiary_name, reference, instruction, status, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, 'accepted', ${now})`;
  const returning = "RETURNING idempotency_key";
  return {
    /** idempotencyKey, businessId, iban, bic, name, reference, instruction, now. Gives a row; fails when the key is known. */
    insert: `${insert} ${returning}`,
    /** The same, but when the key is known it has no effect and gives no row. */
    insertUnlessKnown: `${insert} ON CONFLICT (idempotency_key) DO NOTHING ${returning}`,
    /** idempotencyKey */
    selectInstruction: `SELECT instruction FROM ${payouts} WHERE idempotency_key = ?`,
    /** idempotencyKey */
    selectOrder: `
      SELECT idempotency_key AS "idempotencyKey", iban, bic, beneficiary_name AS name, reference, instruction
      FROM ${payouts} WHERE idempotency_key = ? AND status = 'accepted'`,
    /** status, reason, now, idempotencyKey. The first outcome stays. */
    settle: `
      UPDATE ${payouts} SET status = ?, status_reason = ?, settled_at = ${now}
      WHERE idempotency_key = ? AND status = 'accepted'`,
    /** idempotencyKey */
    selectSettled: `
      SELECT idempotency_key AS "idempotencyKey", business_id AS "businessId", status, status_reason AS reason,
        settled_at AS "settledAt"
      FROM ${payouts} WHERE idempotency_key = ? AND status <> 'accepted'`,
    selectAll: `
      SELECT idempotency_key, business_id, status, status_reason, created_at, settled_at
      FROM ${payouts} ORDER BY created_at, rowid`,
  };
}

const instructionRow = z.object({ instruction: z.string() });

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

// PostgreSQL gives 64-bit integers as texts.
const time = z.coerce.number();

const settledRow = z
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

const inspectedRow = z.object({
  idempotency_key: z.string(),
  business_id: z.string(),
  status: z.string(),
  status_reason: z.string().nullable(),
  created_at: isoTime,
  settled_at: isoTime.nullable(),
});
