import { GuardError, isGuardError } from "@countersign/core";
import { decodeText, encodeText } from "@countersign/idempotency/store";
import { withPostgresTransaction, type PostgresQueryable } from "@countersign/store-postgres";
import { DatabaseError, escapeIdentifier, type Pool, type PoolClient } from "pg";
import type { LedgerDatabase, SqlDialect, Statement, Steps } from "../../ledgers/database.ts";

/** A time in milliseconds since 1970; null: the server's. */
export type Now = () => number | null;

// For the transaction alone, and not from the connection's start on: a PgBouncer in transaction mode would refuse that.
const settings = `
  SET LOCAL statement_timeout = '5s';
  -- What was acknowledged must survive a crash of the server. Stricter settings stay.
  SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off';`;

// The locks of a process that was stopped within a transaction end with it, for others wait for them.
const idleTimeoutMs = 10_000;

/** `now` replaces the server's clock in tests. */
export function ledgerDatabase(pool: Pool, schema: string, now: Now): LedgerDatabase {
  return {
    dialect: postgresDialect(schema),
    now,
    run: (steps) => run(pool, steps),
    transaction(steps, complete) {
      const work = async (client: PoolClient) => {
        await client.query(settings);
        await complete?.(client);
        return run(client, steps);
      };
      return orUnavailable(withPostgresTransaction(pool, work, { idleTimeoutMs }));
    },
  };
}

/**
 * The clock is the server's: the processes that share a database would disagree about leases. In place of it tests bind a time.
 * It is one that stands still for a statement, or no index could be used for it.
 */
export function postgresDialect(schema: string): SqlDialect {
  return {
    schema: `${escapeIdentifier(schema)}.`,
    now: "coalesce(?::bigint, floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint)",
    skipLocked: "FOR UPDATE SKIP LOCKED",
    // The times of events order as texts.
    text: 'text COLLATE "C"',
    time: "bigint",
    id: "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    // What SQLite has by itself.
    rowid: "rowid bigint GENERATED ALWAYS AS IDENTITY,",
    strict: "",
  };
}

async function run<T>(connection: PostgresQueryable, steps: () => Steps<T>): Promise<T> {
  const generator = steps();
  let step = generator.next();
  // oxlint-disable-next-line no-await-in-loop -- each step may depend on the rows of the one before
  while (step.done !== true) step = generator.next(await query(connection, step.value));
  return step.value;
}

/** Runs a statement and gives its rows. */
export async function query(
  connection: PostgresQueryable,
  [sql, ...values]: Statement,
): Promise<readonly unknown[]> {
  // PostgreSQL takes no NUL, and the driver sends one and the same letter for all lone surrogates: two keys would become one.
  const stored = values.map((value) => (typeof value === "string" ? encodeText(value) : value));
  const { rows } = await connection.query(numbered(sql), stored);
  return rows.map(read);
}

/** The statement with `$1`, `$2`, … for its `?`. No literal of a statement holds one. */
export function numbered(statement: string): string {
  let count = 0;
  return statement.replaceAll("?", () => {
    count += 1;
    return `$${count}`;
  });
}

function read(row: unknown): unknown {
  if (typeof row !== "object" || row === null) throw new Error("the PostgreSQL driver gave no row");
  return Object.fromEntries(
    Object.entries(row).map(([name, value]: [string, unknown]) => [
      name,
      typeof value === "string" ? decodeText(value) : value,
    ]),
  );
}

// SQLSTATE classes: connection, rollback, resources, locks and cancellations, shutdown, the server's own input and output.
const passing = new Set(["08", "40", "53", "55", "57", "58"]);

/**
 * Settles as `step` does. What fails because the server cannot answer now rejects as a GuardError 503: the service comes again,
 * and what became of the step is seen by then.
 */
async function orUnavailable<T>(step: Promise<T>): Promise<T> {
  try {
    return await step;
  } catch (error) {
    if (!isPassing(error)) throw error;
    throw new GuardError({
      status: 503,
      code: "database-unavailable",
      message: "the database of the payouts does not answer",
      headers: { "Retry-After": "2" },
      cause: error,
    });
  }
}

function isPassing(error: unknown): boolean {
  if (error instanceof DatabaseError) return passing.has(error.code?.slice(0, 2) ?? "");
  if (typeof error !== "object" || error === null || isGuardError(error)) return false;
  // Of the socket, or of the sockets of each address of a name.
  if ("syscall" in error || "errors" in error) return true;
  // The driver's own errors have no code.
  const message = "message" in error ? String(error.message) : "";
  return /^Connection terminated|^Client (?:has|was)|timeout/i.test(message);
}
