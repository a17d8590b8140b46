import { createOutcomeSender, type Outcome } from "countersign/outcomes";
import { TaskError } from "@countersign/idempotency/work";

/** What is used of a transaction of node-postgres. */
interface Client {
  query(text: string, values: unknown[]): Promise<{ rows: unknown[] }>;
}

/** A queue of your own that adds in the caller's transaction. */
export interface OutcomeQueue {
  add(tx: Client, outcome: Outcome): Promise<unknown>;
}

// #region send
/** What the queue's worker does. What this throws is for its retry. */
export function outcomeWork(
  service: { readonly url: string; readonly apiKey: string },
  onRefused: (outcome: Outcome, reason: string) => unknown,
) {
  const send = createOutcomeSender({
    url: service.url,
    headers: { "x-api-key": service.apiKey },
  });
  return async (outcome: Outcome): Promise<void> => {
    try {
      await send(outcome);
    } catch (error) {
      if (!(error instanceof TaskError && error.isFinal)) throw error;
      await onRefused(outcome, error.message);
    }
  };
}
// #endregion send

// #region graphile-worker
/** One job for each payout; the task `report_outcome` sends it. */
export const onGraphileWorker: OutcomeQueue = {
  add: (tx, outcome) =>
    tx.query(
      `SELECT graphile_worker.add_job(
         'report_outcome', $1::json, job_key => $2)`,
      [JSON.stringify(outcome), outcome.idempotencyKey],
    ),
};
// #endregion graphile-worker

// #region pg-boss
/** What is used of pg-boss. */
interface Boss {
  send(
    queue: string,
    data: object,
    options: { db: Sql; singletonKey: string },
  ): Promise<unknown>;
}

interface Sql {
  executeSql(text: string, values: unknown[]): Promise<{ rows: unknown[] }>;
}

/** The worker of the queue `report-outcome` sends it. */
export const onPgBoss = (boss: Boss): OutcomeQueue => ({
  add: (tx, outcome) =>
    boss.send("report-outcome", outcome, {
      db: { executeSql: (text, values) => tx.query(text, values) },
      singletonKey: outcome.idempotencyKey,
    }),
});
// #endregion pg-boss
