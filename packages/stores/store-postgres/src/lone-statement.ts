import { pooledClients } from "@countersign/idempotency/store";
import { inTransaction, isLockTimeout } from "./errors.ts";
import { factoryName } from "./options.ts";
import {
  type PostgresPoolClient,
  type PostgresQueryable,
  type PostgresResult,
  type PostgresTransaction,
  isPool,
} from "./queryable.ts";

/** With a `name`, which only clients of `pg` take, the server keeps the plan for the connection. */
export interface LoneStatement {
  readonly text: string;
  readonly values: unknown[];
  readonly name: string | undefined;
}

/** Runs a statement in its own transaction. Rejects inside another one: its ROLLBACK would undo a claim, and let in a second attempt. */
export async function runAlone(pool: PostgresQueryable, statement: LoneStatement): Promise<PostgresResult> {
  if (!isPool(pool)) {
    const result = await pool.query(statement.text, statement.values);
    assertEnded(pool);
    return result;
  }
  const client = await pooledClients.take(pool);
  let result: PostgresResult;
  try {
    result = await send(client, statement);
    assertEnded(client);
  } catch (error) {
    // Ending the connection rolls back the transaction that was left open on it, and what the statement wrote.
    pooledClients.release(client, !(isLockTimeout(error) && (await takesStatements(client))));
    throw error;
  }
  pooledClients.release(client);
  return result;
}

function send(client: PostgresPoolClient, { text, values, name }: LoneStatement): Promise<PostgresResult> {
  if (name === undefined) return client.query(text, values);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what `pg` takes beside a text
  return client.query({ name, text, values } as unknown as string);
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
