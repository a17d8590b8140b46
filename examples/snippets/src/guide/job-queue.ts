/** What is used of a transaction of node-postgres. */
interface Client {
  query(text: string, values: unknown[]): Promise<{ rows: unknown[] }>;
}

export interface Outcome {
  readonly key: string;
  readonly status: "SETTLED" | "FAILED";
}

/** A queue of your own that adds in the caller's transaction. */
export interface OutcomeQueue {
  add(tx: Client, outcome: Outcome): Promise<unknown>;
}

// #region graphile-worker
/** One job for each payout; its task `report_outcome` sends it. */
export const onGraphileWorker: OutcomeQueue = {
  add: (tx, outcome) =>
    tx.query(
      `SELECT graphile_worker.add_job(
         'report_outcome', $1::json, job_key => $2)`,
      [JSON.stringify(outcome), outcome.key],
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
      singletonKey: outcome.key,
    }),
});
// #endregion pg-boss
