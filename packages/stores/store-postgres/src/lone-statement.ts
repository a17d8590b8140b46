import { type ClientPool, releaseClient, takeClient } from "@countersign/idempotency/store";
import { inTransaction, isLockTimeout } from "./errors.ts";
import { factoryName } from "./options.ts";
import type { PostgresQueryable, PostgresResult, PostgresTransaction } from "./queryable.ts";
import type { PostgresPoolClient } from "./queryable.ts";

/** Runs a statement in its own transaction. Rejects inside another one: its ROLLBACK would undo a claim, and let in a second attempt. */
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

// A heartbeat after completeIn() must not cost a connection each time. In an aborted transaction the server refuses this statement.
async function takesStatements(client: PostgresPoolClient): Promise<boolean> {
  try {
    await client.query("SELECT 1");
    return true;
  } catch {
    return false;
  }
}

// The state came with the statement just awaited: nobody else has the client. The server knows only of a transaction that has written.
function assertEnded(connection: PostgresTransaction): void {
  const status = connection.getTransactionStatus?.();
  if (status === "T" || status === "E") throw new Error(`${factoryName}: ${inTransaction}`);
}

// A client of `pg` has a function connect(), too.
function isPool(
  pool: PostgresQueryable & { readonly connect?: unknown; readonly totalCount?: unknown },
): pool is PostgresQueryable & ClientPool<PostgresPoolClient> {
  return typeof pool.connect === "function" && typeof pool.totalCount === "number";
}
