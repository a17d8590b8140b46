import type { SqlDialect } from "./sql-dialect.ts";

/** The statements of an outbox, with the names of their values in the order in which they are bound. */
export interface OutboxStatements {
  /** task, idempotencyKey, now. Without effect when the task is there. */
  readonly add: string;
  /** now, leaseMs, task, now. Gives the claimed task. */
  readonly claim: string;
  /** id */
  readonly finish: string;
  /** now, waitMs, error, id */
  readonly retry: string;
  /** error, id */
  readonly bury: string;
}

export function outboxStatements({ schema, now, skipLocked }: SqlDialect): OutboxStatements {
  const outbox = `${schema}outbox`;
  return {
    add: `
      INSERT INTO ${outbox} (task, idempotency_key, state, attempts, due_at) VALUES (?, ?, 'due', 0, ${now})
      ON CONFLICT (idempotency_key, task) DO NOTHING`,
    claim: `
      UPDATE ${outbox} SET attempts = attempts + 1, due_at = ${now} + ?
      WHERE id = (
        SELECT id FROM ${outbox} WHERE state = 'due' AND task = ? AND due_at <= ${now}
        ORDER BY due_at, id LIMIT 1 ${skipLocked}
      )
      RETURNING id, idempotency_key AS "idempotencyKey", attempts`,
    finish: `UPDATE ${outbox} SET state = 'done', last_error = NULL WHERE id = ?`,
    retry: `UPDATE ${outbox} SET due_at = ${now} + ?, last_error = ? WHERE id = ? AND state = 'due'`,
    bury: `UPDATE ${outbox} SET state = 'dead', last_error = ? WHERE id = ? AND state = 'due'`,
  };
}
