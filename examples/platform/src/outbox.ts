import type { Awaitable } from "@countersign/idempotency-guard";
import { z } from "zod";

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

/** A task as a database has it. */
export const taskRow = z.object({
  // PostgreSQL gives 64-bit integers as texts.
  id: z.coerce.number(),
  idempotencyKey: z.string(),
  /** This attempt included. */
  attempts: z.number(),
});

/** The text of an error as it is kept beside its task. */
export function keptError(error: string): string {
  return error.slice(0, 256);
}
