import type { Pool, PoolConnection } from "mysql2/promise";

// So long may a transaction wait for its next statement. Otherwise a process that was cut off keeps its key locked for eight hours.
const idleSeconds = 60;

/**
 * Runs `work` between BEGIN and COMMIT on a connection of its own, and gives its result when the commit is durable. Rolls back when
 * `work` rejects, and rejects with the same. Rejects, and nothing of it stays, when the server has rolled back meanwhile, for a
 * deadlock, and `work` went on. After a rejection of COMMIT itself the outcome is open: the record of the key tells it.
 */
export async function withTransaction<T>(
  pool: Pool,
  work: (connection: PoolConnection) => Promise<T>,
): Promise<T> {
  const connection = await pool.getConnection();
  let result: T;
  try {
    // Without autocommit: what is sent behind a rollback of the server's would commit by itself, a payout without its key.
    await connection.query(`SET SESSION autocommit = 0, idle_transaction_timeout = ${idleSeconds}`);
    await connection.beginTransaction();
    await connection.query("SAVEPOINT begun");
    result = await work(connection);
    // A savepoint ends with its transaction: this fails in any other one.
    await connection.query("RELEASE SAVEPOINT begun");
    await connection.commit();
  } catch (error) {
    await giveBack(connection, "ROLLBACK");
    throw error;
  }
  await giveBack(connection);
  return result;
}

async function giveBack(connection: PoolConnection, first?: string): Promise<void> {
  try {
    if (first !== undefined) await connection.query(first);
    await connection.query("SET SESSION autocommit = 1");
    connection.release();
  } catch {
    // The server rolls back by itself when the connection ends.
    connection.destroy();
  }
}
