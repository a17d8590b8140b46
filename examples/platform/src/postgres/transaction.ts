import { withPostgresTransaction } from "@countersign/store-postgres";
import type { Pool, PoolClient } from "pg";

// For the transaction alone, and not from the connection's start on: a PgBouncer in transaction mode would refuse that.
const settings = `
  SET LOCAL statement_timeout = '5s';
  -- What was acknowledged must survive a crash of the server. Stricter settings stay.
  SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off';`;

// The locks of a process that was stopped within a transaction end with it, for others wait for them.
const idleTimeoutMs = 10_000;

/** Runs `work` between BEGIN and COMMIT, each statement in at most five seconds. Rolls back and rejects when it rejects. */
export function inTransaction<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  const limited = async (client: PoolClient): Promise<T> => {
    await client.query(settings);
    return work(client);
  };
  return withPostgresTransaction(pool, limited, { idleTimeoutMs });
}
