import type { Awaitable } from "@countersign/idempotency";
import { z } from "zod";
import type { LedgerDatabase, SqlDialect, Statement } from "./database.ts";

/** What is left to do about a payout: move the money, then tell the service how that ended. */
export type TaskKind = "transfer" | "confirmation";

/** A task as claimed by a worker. */
export type Task = Readonly<z.infer<typeof taskRow>>;

/**
 * Tasks that must happen although processes die. A claim pushes the due time by a lease: when the worker dies, the task
 * comes back by itself. A task can therefore run twice, and what it calls must recognise the idempotency key. Tasks are
 * added by the payout ledger, inside the transaction that makes them necessary.
 */
export interface Outbox {
  /** Takes the task that has been due for longest; two processes never take the same one while its lease lasts. */
  claim(task: TaskKind, leaseMs: number): Awaitable<Task | undefined>;
  finish(id: number): Awaitable<void>;
  /** The task is due again in `waitMs` milliseconds. */
  retry(id: number, waitMs: number, error: string): Awaitable<void>;
  /** Gives a task up; the row stays for an operator. */
  bury(id: number, error: string): Awaitable<void>;
}

const taskRow = z.object({
  // PostgreSQL gives 64-bit integers as texts.
  id: z.coerce.number(),
  idempotencyKey: z.string(),
  /** This attempt included. */
  attempts: z.number(),
});

/** The text of an error as it is kept beside its task. */
const keptError = (error: string): string => error.slice(0, 256);

export function outboxOn(database: LedgerDatabase): Outbox {
  const statements = outboxStatements(database.dialect);
  const change = (...statement: Statement): Awaitable<void> =>
    database.run(function* () {
      yield statement;
    });
  return {
    claim: (task, leaseMs) =>
      database.run(function* () {
        const claimedAt = database.now();
        const [row] = yield [statements.claim, claimedAt, leaseMs, task, claimedAt];
        return taskRow.optional().parse(row);
      }),
    finish: (id) => change(statements.finish, id),
    retry: (id, waitMs, error) => change(statements.retry, database.now(), waitMs, keptError(error), id),
    bury: (id, error) => change(statements.bury, keptError(error), id),
  };
}

/** The statements, each with the names of its values in their order. */
export function outboxStatements({ schema, now, skipLocked }: SqlDialect) {
  const outbox = `${schema}outbox`;
  return {
    /** task, idempotencyKey, now. Without effect when the task is there. */
    add: `
      INSERT INTO ${outbox} (task, idempotency_key, state, attempts, due_at) VALUES (?, ?, 'due', 0, ${now})
      ON CONFLICT (idempotency_key, task) DO NOTHING`,
    /** now, leaseMs, task, now. Gives the claimed task. */
    claim: `
      UPDATE ${outbox} SET attempts = attempts + 1, due_at = ${now} + ?
      WHERE id = (
        SELECT id FROM ${outbox} WHERE state = 'due' AND task = ? AND due_at <= ${now}
        ORDER BY due_at, id LIMIT 1 ${skipLocked}
      )
      RETURNING id, idempotency_key AS "idempotencyKey", attempts`,
    /** id */
    finish: `UPDATE ${outbox} SET state = 'done', last_error = NULL WHERE id = ?`,
    /** now, waitMs, error, id */
    retry: `UPDATE ${outbox} SET due_at = ${now} + ?, last_error = ? WHERE id = ? AND state = 'due'`,
    /** error, id */
    bury: `UPDATE ${outbox} SET state = 'dead', last_error = ? WHERE id = ? AND state = 'due'`,
  };
}
