import type { Awaitable } from "@countersign/idempotency";
import { answerOf } from "@countersign/idempotency/internal";
import type { Outcomes } from "countersign/outcomes";
import type { Payout } from "countersign/payout";
import type { TaskQueue } from "@countersign/idempotency/work";
import { z } from "zod";
import type { TransferOrder, TransferOutcome } from "../bank-rail.ts";
import type { LedgerDatabase, SqlDialect } from "./database.ts";

/** A payout instruction that passed every check. Its body is kept as signed: no digit of the amount is lost. */
export type AcceptedPayout = Pick<
  Payout,
  "idempotencyKey" | "businessId" | "beneficiary" | "reference" | "bodyText"
>;

/**
 * `known`: an earlier attempt has written the payout, and its answer was lost. `known-otherwise`: the same, but the earlier
 * instruction was another text.
 */
export type Acceptance = "accepted" | "known" | "known-otherwise";

/** The clock, and what follows a payout: it commits with the payout's row. */
export interface PayoutLedgerParts {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly transfers: Pick<TaskQueue<object>, "add">;
  /** Undefined: nobody is told. */
  readonly outcomes: Pick<Outcomes<object>, "expect" | "report"> | undefined;
}

/** The platform's own record of payouts. */
export interface PayoutLedger {
  /**
   * Writes the payout and the task to execute it: with `tx` in the endpoint's transaction, which has ended its key, so that one that
   * the ledger knows is an error. Without it the UNIQUE key of the payouts alone decides, and a known key changes nothing.
   */
  accept(payout: AcceptedPayout, tx?: object): Awaitable<Acceptance>;
  /** Writes how a transfer ended, and what the service is told of it. */
  settle(order: TransferOrder, outcome: TransferOutcome, tx: object): Awaitable<void>;
  /** As shown by GET /inspect/payouts. */
  inspect(): Promise<readonly z.infer<typeof inspectedRow>[]>;
  /** Rejects when the database does not answer. */
  check(): Promise<void>;
}

export function payoutLedgerOn(database: LedgerDatabase, parts: PayoutLedgerParts): PayoutLedger {
  const { now, transfers, outcomes } = parts;
  const statements = payoutStatements(database.dialect);
  return {
    accept(payout, endpointTx) {
      const { idempotencyKey: id, businessId, beneficiary, reference } = payout;
      const instruction = payout.bodyText();
      const { iban, bic, name } = beneficiary;
      const insert = endpointTx === undefined ? statements.insertUnlessKnown : statements.insert;
      const createdAt = new Date(now()).toISOString();
      const row = [id, businessId, iban, bic, name, reference ?? null, instruction, createdAt];
      return database.transaction(function* (tx) {
        const inserted = yield* answerOf(database.query([insert, ...row], tx));
        if (inserted.length === 0) {
          const [known] = yield* answerOf(database.query([statements.selectInstruction, id], tx));
          return instructionRow.parse(known).instruction === instruction ? "known" : "known-otherwise";
        }
        const order: TransferOrder = { idempotencyKey: id, businessId, beneficiary, reference, instruction };
        yield* answerOf(transfers.add(tx, { id, body: JSON.stringify(order) }));
        // In its own transaction the endpoint expects the outcome.
        if (endpointTx === undefined) yield* answerOf(outcomes?.expect(tx, payout));
        return "accepted";
      }, endpointTx);
    },
    settle({ idempotencyKey, businessId }, { status, reason }, settlingTx) {
      const settledAt = new Date(now());
      const row = [status, reason ?? null, settledAt.toISOString(), idempotencyKey];
      return database.transaction(function* (tx) {
        yield* answerOf(database.query([statements.settle, ...row], tx));
        const outcome = { idempotencyKey, business_id: businessId, status, reason, settledAt };
        yield* answerOf(outcomes?.report(tx, outcome));
      }, settlingTx);
    },
    async inspect() {
      return inspectedRow.array().parse(await database.query([statements.selectAll]));
    },
    async check() {
      await database.query(["SELECT 1"]);
    },
  };
}

/** The statements, each with the names of its values in their order. */
export function payoutStatements({ schema }: SqlDialect) {
  const payouts = `${schema}payouts`;
  const insert = `
    INSERT INTO ${payouts} (idempotency_key, business_id, iban, bic, beneficiary_name, reference, instruction, status, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, 'accepted', ?)`;
  const returning = "RETURNING idempotency_key";
  return {
    /** idempotencyKey, businessId, iban, bic, name, reference, instruction, now. Gives a row; fails when the key is known. */
    insert: `${insert} ${returning}`,
    /** The same, but when the key is known it has no effect and gives no row. */
    insertUnlessKnown: `${insert} ON CONFLICT (idempotency_key) DO NOTHING ${returning}`,
    /** idempotencyKey */
    selectInstruction: `SELECT instruction FROM ${payouts} WHERE idempotency_key = ?`,
    /** status, reason, now, idempotencyKey. The first outcome stays. */
    settle: `
      UPDATE ${payouts} SET status = ?, status_reason = ?, settled_at = ?
      WHERE idempotency_key = ? AND status = 'accepted'`,
    selectAll: `
      SELECT idempotency_key, business_id, status, status_reason, created_at, settled_at
      FROM ${payouts} ORDER BY created_at, rowid`,
  };
}

const instructionRow = z.object({ instruction: z.string() });

const inspectedRow = z.object({
  idempotency_key: z.string(),
  business_id: z.string(),
  status: z.string(),
  status_reason: z.string().nullable(),
  created_at: z.string(),
  settled_at: z.string().nullable(),
});
