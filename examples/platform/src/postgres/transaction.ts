import { withPostgresTransaction } from "@countersign/store-postgres";
import type { Pool, PoolClient } from "pg";

// For the transaction alone, and not from the connection's start on: a PgBouncer in transaction mode would refuse that.
const settings = `
  SET LOCAL statement_timeout = '5s';
  -- The locks of a process that was stopped within a transaction end with it, for others wait for them.
  SET LOCAL idle_in_transaction_session_timeout = '10s';
  -- What was acknowledged must survive a crash of the server. Stricter settings stay.
  SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off';`;

/** Runs `work` between BEGIN and COMMIT, each statement in at most five seconds. Rolls back and rejects when it rejects. */
export function inTransaction<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  return withPostgresTransaction(pool, async (client) => {
    await client.query(settings);
    return work(client);
  });
}
