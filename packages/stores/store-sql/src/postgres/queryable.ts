import type { ClientPool, PooledClient, Row } from "@countersign/idempotency/store";

/** What a query resolves to, as far as the stores read it: rows as objects by column name. */
export interface PostgresResult {
  readonly rows: readonly unknown[];
  /** The command tag without its counts, where the driver tells it: COMMIT of a failed transaction answers `ROLLBACK`. */
  readonly command?: string | undefined;
}

/** Runs one statement with parameters `$1`, `$2`, … (string, number, boolean, Buffer, null): a Pool or Client of `pg`, or the like. */
export interface PostgresQueryable {
  query(text: string, values?: unknown[]): Promise<PostgresResult>;
}

/** The user's own library, as the stores run statements by it. */
export interface DatabaseQueryable extends PostgresQueryable {
  /** Runs one statement; rejects with an error of class 08 where its commit's wait for a standby was cancelled. */
  queryConfirmed(text: string, values?: unknown[]): Promise<PostgresResult>;
}

/** A connection on which the caller has begun a transaction. */
export interface PostgresTransaction extends PostgresQueryable {
  /** The last state of the connection that the server told the driver: `T` in a transaction. Later versions of `pg` 8 have it. */
  getTransactionStatus?(): string | null;
}

/** Throws a TypeError unless `value` can run queries. `expected` names it and says what it must be. */
export function assertQueryable(value: unknown, expected: string): asserts value is PostgresQueryable {
  if (!isQueryable(value)) throw new TypeError(`${expected} with a function query(text, values)`);
}

export function isQueryable(value: unknown): value is PostgresQueryable {
  return typeof value === "object" && value !== null && "query" in value && typeof value.query === "function";
}

/** Throws a TypeError when the driver, or an ORM in its place, answers something else than rows. */
export function rowsOf(result: unknown): readonly Row[] {
  if (typeof result !== "object" || result === null || !("rows" in result) || !isRows(result.rows)) {
    throw new TypeError(
      "the PostgreSQL driver returned no { rows } of objects: the stores need a client of pg or one that answers like it",
    );
  }
  return result.rows;
}

function isRows(rows: unknown): rows is readonly Row[] {
  return Array.isArray(rows) && rows.every((row) => typeof row === "object" && row !== null);
}

/** A connection taken out of a pool. */
export interface PostgresPoolClient extends PostgresTransaction, Omit<PooledClient, "query"> {}

/** Whether connections can be taken out of it. A client of `pg` has a function connect(), too. */
export function isPool(
  pool: PostgresQueryable & { readonly connect?: unknown; readonly totalCount?: unknown },
): pool is PostgresQueryable & ClientPool<PostgresPoolClient> {
  return typeof pool.connect === "function" && typeof pool.totalCount === "number";
}
