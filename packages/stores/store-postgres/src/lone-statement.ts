import { inTransaction, isLockTimeout } from "./errors.ts";
import { factoryName } from "./options.ts";
import type { PostgresQueryable, PostgresResult, PostgresTransaction } from "./queryable.ts";
import type { PostgresPoolClient } from "./queryable.ts";
import { type PostgresPool, releaseClient, takeClient } from "./transaction.ts";

/**
 * Runs a statement as a transaction of its own. Rejects when the driver says that it was part of another one: a claim that
 * somebody's ROLLBACK undoes would let in a second attempt. The server itself says so only after the transaction has written.
 */
export async function runAlone(
  pool: PostgresQueryable,
  text: string,
  values: unknown[],
): Promise<PostgresResult> {
  if (!isPool(pool)) {
    const result = await pool.query(text, values);
    assertEnded(pool);
    return result;
  }
  const client = await takeClient(pool);
  let result: PostgresResult;
  try {
    result = await client.query(text, values);
    assertEnded(client);
  } catch (error) {
    // Ending the connection rolls back the transaction that was left open on it, and what the statement wrote.
    releaseClient(client, !(isLockTimeout(error) && (await takesStatements(client))));
    throw error;
  }
  releaseClient(client);
  return result;
}

// Heartbeats after completeIn() find their row locked each time, and must not cost a connection each. In a transaction that was left
// open, which the error has aborted, the server refuses this statement.
async function takesStatements(client: PostgresPoolClient): Promise<boolean> {
  try {
    await client.query("SELECT 1");
    return true;
  } catch {
    return false;
  }
}

// This state came with the end of the statement just awaited: nobody else has the client meanwhile.
function assertEnded(connection: PostgresTransaction): void {
  const status = connection.getTransactionStatus?.();
  if (status === "T" || status === "E") throw new Error(`${factoryName}: ${inTransaction}`);
}

// A client of `pg` has a function connect(), too.
function isPool(
  pool: PostgresQueryable & { readonly connect?: unknown; readonly totalCount?: unknown },
): pool is PostgresQueryable & PostgresPool<PostgresPoolClient> {
  return typeof pool.connect === "function" && typeof pool.totalCount === "number";
}
