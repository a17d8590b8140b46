import type { Awaitable } from "@countersign/idempotency";

/** What SQLite and PostgreSQL write differently. The ledgers are written once, so that a rule cannot hold on one of them alone. */
export interface SqlDialect {
  /** Stands before the name of a table. */
  readonly schema: string;
  /** The present time in milliseconds since 1970, by way of one bound value. */
  readonly now: string;
  /** Ends a SELECT whose row is about to be changed: passes over rows that another process is about to change. */
  readonly skipLocked: string;
  /** The types of columns: texts that order byte by byte, times. */
  readonly text: string;
  readonly time: string;
  /** The type of a primary key that counts up, and a column that orders rows as they came. */
  readonly id: string;
  readonly rowid: string;
  /** Ends the definition of a table. */
  readonly strict: string;
}

/** A statement and its values, in the order of its `?`. */
export type Statement = readonly [sql: string, ...values: readonly (string | number | null)[]];

/** Yields each statement, and is resumed with its rows: SQLite answers at once, PostgreSQL later. */
export type Steps<T> = Generator<Statement, T, readonly unknown[]>;

/**
 * Ends an idempotency key or an event as part of the ledger's own transaction; when it throws or rejects, the transaction
 * never happened.
 */
export type Completion = (transaction: unknown) => unknown;

/** A database that has ledgers. */
export interface LedgerDatabase {
  readonly dialect: SqlDialect;
  /** What the `now` of the dialect is bound to. */
  now(): number | null;
  run<T>(steps: () => Steps<T>): Awaitable<T>;
  /**
   * `complete`, then the steps, then COMMIT. `complete` is first so that nobody takes the key over, however long the steps wait
   * for a lock.
   */
  transaction<T>(steps: () => Steps<T>, complete?: Completion): Awaitable<T>;
}
