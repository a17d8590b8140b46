import {
  commitUnconfirmed,
  pooledClients,
  tellsWarnings,
  watchCommits,
} from "@countersign/idempotency/store";
import { afterCommit } from "./commit.ts";
import { inTransaction, isLockTimeout } from "./errors.ts";
import { factoryName } from "./options.ts";
import {
  type DatabaseQueryable,
  type PostgresPoolClient,
  type PostgresQueryable,
  type PostgresResult,
  type PostgresTransaction,
  isPool,
  rowsOf,
} from "./queryable.ts";

/** With a `name`, which only clients of `pg` take, the server keeps the plan for the connection. */
export interface LoneStatement {
  readonly text: string;
  readonly values: unknown[];
  readonly name: string | undefined;
}

/**
 * Runs a statement in its own transaction. Rejects inside another one: its ROLLBACK would undo a claim, and let in a second attempt. Rejects
 * with an error of class 08 where its commit's wait for a synchronous standby was cancelled.
 */
export async function runAlone(
  pool: PostgresQueryable,
  statement: LoneStatement,
  isSynchronous: boolean,
): Promise<PostgresResult> {
  if (!isPool(pool)) {
    const { text, values } = statement;
    if (isSynchronous && isOfDatabase(pool)) return pool.queryConfirmed(text, values);
    const confirms = isSynchronous && !isClientOfPg(pool);
    const result = await confirmed(pool, () => pool.query(text, values), confirms);
    assertEnded(pool);
    return result;
  }
  const client = await pooledClients.take(pool);
  let result: PostgresResult;
  try {
    const confirms = isSynchronous && !tellsWarnings(client);
    result = await confirmed(client, () => send(client, statement), confirms);
    assertEnded(client);
  } catch (error) {
    // Ending the connection rolls back the transaction that was left open on it, and what the statement wrote.
    pooledClients.release(client, !(isLockTimeout(error) && (await takesStatements(client))));
    throw error;
  }
  pooledClients.release(client);
  return result;
}

/** Commits once more where the driver does not tell of a wait that was cancelled: a second wait confirms the first. */
async function confirmed(
  connection: PostgresQueryable,
  step: () => Promise<PostgresResult>,
  confirms: boolean,
): Promise<PostgresResult> {
  if (!confirms) return watchCommits(connection, step);
  const result = await step();
  // Each statement that writes gives what it has written.
  if (rowsOf(result).length === 0) return result;
  try {
    await connection.query(afterCommit);
  } catch (error) {
    throw commitUnconfirmed(error);
  }
  return result;
}

function isOfDatabase(pool: PostgresQueryable): pool is DatabaseQueryable {
  return "queryConfirmed" in pool;
}

/** What else has listeners may be a pool that passes no warnings on. */
function isClientOfPg(pool: PostgresQueryable): boolean {
  return tellsWarnings(pool) && "connectionParameters" in pool;
}

function send(client: PostgresPoolClient, { text, values, name }: LoneStatement): Promise<PostgresResult> {
  if (name === undefined) return client.query(text, values);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what `pg` takes beside a text
  return client.query({ name, text, values } as unknown as string);
}

// What meets a transaction that has its row must not cost a connection each time. In an aborted transaction the server refuses this statement.
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
