import { GuardError } from "@countersign/core";
import { option, readOptions, unanswered, type OptionTable } from "@countersign/core/internal";
import { pooledClients, watchCommits, type ClientPool } from "@countersign/idempotency/store";
import { type PostgresStoreCode, sqlStateOf, syntaxError } from "./errors.ts";
import { lendClient } from "./lent-client.ts";
import type { PostgresPoolClient } from "./queryable.ts";
import { setOpenMark } from "./statement-parts.ts";

/** Options of {@link withPostgresTransaction}. */
export interface PostgresTransactionOptions {
  /**
   * For how long the transaction may wait for its next statement, in milliseconds; then the server ends the session and rolls
   * back. Otherwise a process that was cut off would keep its rows locked for hours. Takes the place of the session's own
   * `idle_in_transaction_session_timeout`. 100 to 3,600,000, default 60,000.
   */
  readonly idleTimeoutMs?: number | undefined;
}

export const table: OptionTable<PostgresTransactionOptions> = {
  idleTimeoutMs: option.integer({ min: 100, max: 3_600_000, fallback: 60_000 }),
};

/**
 * Runs `work` between BEGIN and COMMIT on a client of its own. Resolves to its result when the commit is durable; rolls back and rejects
 * when `work` rejects. After a rejection of COMMIT itself it may have committed. The client takes
 * no statement once `work` has settled. Rejects with a TypeError on a bad option, and with a GuardError (503, `transaction-not-begun`)
 * when the pool gives no connection or BEGIN fails: `work` has not run then.
 */
export async function withPostgresTransaction<T, Client extends PostgresPoolClient>(
  pool: ClientPool<Client>,
  work: (client: Client) => Promise<T>,
  options: PostgresTransactionOptions = {},
): Promise<T> {
  const { idleTimeoutMs } = readOptions("withPostgresTransaction", table, options);
  const client = await orNotBegun(pooledClients.take(pool));
  const lent = lendClient(client);
  let result: T;
  try {
    await orNotBegun(begin(client, idleTimeoutMs));
    result = await work(lent.client);
  } catch (error) {
    lent.end();
    await pooledClients.rollBack(client);
    throw error;
  }
  try {
    lent.end();
    await commit(client);
  } catch (error) {
    throw lent.reasonOf(error);
  }
  return result;
}

// An event that has only waited for a connection must not count as failed.
async function orNotBegun<T>(step: Promise<T>): Promise<T> {
  try {
    return await step;
  } catch (error) {
    if (error instanceof TypeError) throw error;
    const message = "no transaction could be begun on a connection of the pool";
    throw new GuardError<PostgresStoreCode>(unanswered("transaction-not-begun", message, error));
  }
}

async function begin(client: PostgresPoolClient, idleTimeoutMs: number): Promise<void> {
  const setIdleTimeout = `SET LOCAL idle_in_transaction_session_timeout = ${idleTimeoutMs}`;
  try {
    await client.query(`BEGIN; ${setOpenMark}; ${setIdleTimeout}`);
  } catch (error) {
    // A driver that prepares every statement sends only single ones. Nothing has begun.
    if (sqlStateOf(error) !== syntaxError) throw error;
    await client.query("BEGIN");
    await client.query(setIdleTimeout);
  }
}

async function commit(client: PostgresPoolClient): Promise<void> {
  let command: string | undefined;
  try {
    ({ command } = await watchCommits(client, () => client.query("COMMIT")));
  } catch (error) {
    pooledClients.release(client, true);
    throw error;
  }
  pooledClients.release(client);
  // The server answers so, without an error, when a statement failed and `work` went on: nothing was written.
  if (command === "ROLLBACK") {
    throw new Error(
      "withPostgresTransaction: the transaction was rolled back, because a statement in it had failed; let its error through",
    );
  }
}
