import type { SqlDialect } from "./sql-dialect.ts";

/** The statements of a payout ledger, with the names of their values in the order in which they are bound. */
export interface PayoutStatements {
  /** idempotencyKey, businessId, iban, bic, name, reference, instruction, now. Gives a row; fails when the key is known. */
  readonly insert: string;
  /** The same, but when the key is known it has no effect and gives no row. */
  readonly insertUnlessKnown: string;
  /** idempotencyKey */
  readonly selectInstruction: string;
  /** idempotencyKey */
  readonly selectOrder: string;
  /** status, reason, now, idempotencyKey. The first outcome stays. */
  readonly settle: string;
  /** idempotencyKey */
  readonly selectSettled: string;
  readonly selectAll: string;
}

export function payoutStatements({ schema, now }: SqlDialect): PayoutStatements {
  const payouts = `${schema}payouts`;
  const insert = `
    INSERT INTO ${payouts} (idempotency_key, business_id, iban, bic, beneficiary_name, reference, instruction, status, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, 'accepted', ${now})`;
  const returning = "RETURNING idempotency_key";
  return {
    insert: `${insert} ${returning}`,
    insertUnlessKnown: `${insert} ON CONFLICT (idempotency_key) DO NOTHING ${returning}`,
    selectInstruction: `SELECT instruction FROM ${payouts} WHERE idempotency_key = ?`,
    selectOrder: `
      SELECT idempotency_key AS "idempotencyKey", iban, bic, beneficiary_name AS name, reference, instruction
      FROM ${payouts} WHERE idempotency_key = ? AND status = 'accepted'`,
    settle: `
      UPDATE ${payouts} SET status = ?, status_reason = ?, settled_at = ${now}
      WHERE idempotency_key = ? AND status = 'accepted'`,
    selectSettled: `
      SELECT idempotency_key AS "idempotencyKey", business_id AS "businessId", status, status_reason AS reason,
        settled_at AS "settledAt"
      FROM ${payouts} WHERE idempotency_key = ? AND status <> 'accepted'`,
    selectAll: `
      SELECT idempotency_key, business_id, status, status_reason, created_at, settled_at
      FROM ${payouts} ORDER BY created_at, rowid`,
  };
}
