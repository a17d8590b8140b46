import type { Database } from "@countersign/idempotency";
import { runStepsIn } from "@countersign/idempotency/internal";
import { decodeText, encodeText } from "@countersign/idempotency/store";
import { escapeIdentifier, type Pool, type PoolClient } from "pg";
import type { LedgerDatabase, SqlDialect, Statement } from "../../ledgers/database.ts";

// For the transaction alone, and not from the connection's start on: a PgBouncer in transaction mode would refuse that.
// The locks of a process that was stopped within a transaction end with it, for others wait for them.
const settings = `
  SET LOCAL statement_timeout = '5s';
  SET LOCAL idle_in_transaction_session_timeout = '10s';
  -- What was acknowledged must survive a crash of the server. Stricter settings stay.
  SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off';`;

export function ledgerDatabase(pool: Pool, database: Database<PoolClient>, schema: string): LedgerDatabase {
  return {
    dialect: postgresDialect(schema),
    query: (statement, tx?: PoolClient) => query(tx ?? pool, statement),
    transaction(steps, tx?: PoolClient) {
      if (tx !== undefined) return runStepsIn("async", steps(tx));
      return database.run(async (client) => {
        await client.query(settings);
        return runStepsIn("async", steps(client));
      });
    },
  };
}

export function postgresDialect(schema: string): SqlDialect {
  return {
    schema: `${escapeIdentifier(schema)}.`,
    text: 'text COLLATE "C"',
    // What SQLite has by itself.
    rowid: "rowid bigint GENERATED ALWAYS AS IDENTITY,",
    strict: "",
  };
}

/** Runs a statement and gives its rows. */
export async function query(
  connection: Pool | PoolClient,
  [sql, ...values]: Statement,
): Promise<readonly unknown[]> {
  // PostgreSQL takes no NUL, and the driver sends one and the same letter for all lone surrogates: two keys would become one.
  const stored = values.map((value) => (typeof value === "string" ? encodeText(value) : value));
  const { rows } = await connection.query<Record<string, unknown>>(numbered(sql), stored);
  return rows.map((row) =>
    Object.fromEntries(Object.entries(row).map(([name, value]) => [name, decoded(value)])),
  );
}

/** The statement with `$1`, `$2`, … for its `?`. No literal of a statement holds one. */
export function numbered(statement: string): string {
  let count = 0;
  return statement.replaceAll("?", () => {
    count += 1;
    return `$${count}`;
  });
}

function decoded(value: unknown): unknown {
  return typeof value === "string" ? decodeText(value) : value;
}
