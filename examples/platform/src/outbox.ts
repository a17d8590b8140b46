import { z } from "zod";
import type { PlatformDatabase } from "./database.ts";

/** What is left to do about a payout: move the money, then tell the service how that ended. */
export type TaskKind = "transfer" | "confirmation";

const taskSchema = z.object({
  id: z.number(),
  idempotencyKey: z.string(),
  /** This attempt included. */
  attempts: z.number(),
});

/** A task as claimed by a worker. */
export type Task = Readonly<z.infer<typeof taskSchema>>;

/**
 * Tasks that must happen although processes die. A claim pushes the due time by a lease: when the worker dies, the task
 * comes back by itself. A task can therefore run twice, and what it calls must recognise the idempotency key.
 */
export interface Outbox {
  /** To be called inside the transaction that makes the task necessary. */
  add(task: TaskKind, idempotencyKey: string, dueAt: number): void;
  claim(task: TaskKind, now: number, leaseMs: number): Task | undefined;
  finish(id: number): void;
  retry(id: number, dueAt: number, error: string): void;
  /** Gives a task up; the row stays for an operator. */
  bury(id: number, error: string): void;
}

export function createOutbox(database: PlatformDatabase): Outbox {
  const add = database.prepare(
    "INSERT OR IGNORE INTO outbox (task, idempotency_key, state, attempts, due_at) VALUES (?, ?, 'due', 0, ?)",
  );
  const claim = database.prepare(`
    UPDATE outbox SET attempts = attempts + 1, due_at = ?
    WHERE id = (SELECT id FROM outbox WHERE state = 'due' AND task = ? AND due_at <= ? ORDER BY due_at, id LIMIT 1)
    RETURNING id, idempotency_key AS idempotencyKey, attempts`);
  const finish = database.prepare("UPDATE outbox SET state = 'done', last_error = NULL WHERE id = ?");
  const retry = database.prepare(
    "UPDATE outbox SET due_at = ?, last_error = ? WHERE id = ? AND state = 'due'",
  );
  const bury = database.prepare(
    "UPDATE outbox SET state = 'dead', last_error = ? WHERE id = ? AND state = 'due'",
  );
  return {
    add: (task, idempotencyKey, dueAt) => void add.run(task, idempotencyKey, dueAt),
    claim: (task, now, leaseMs) => taskSchema.optional().parse(claim.all(now + leaseMs, task, now)[0]),
    finish: (id) => void finish.run(id),
    retry: (id, dueAt, error) => void retry.run(dueAt, error.slice(0, 256), id),
    bury: (id, error) => void bury.run(error.slice(0, 256), id),
  };
}
