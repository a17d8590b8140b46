import type { Awaitable } from "@countersign/idempotency";
import type { Steps } from "@countersign/idempotency/internal";

/** What SQLite and PostgreSQL write differently. The ledgers are written once, so that a rule cannot hold on one of them alone. */
export interface SqlDialect {
  /** Stands before the name of a table. */
  readonly schema: string;
  /** The type of texts that order byte by byte, as times do. */
  readonly text: string;
  /** A column that orders rows as they came. */
  readonly rowid: string;
  /** Ends the definition of a table. */
  readonly strict: string;
}

/** A statement and its values, in the order of its `?`. */
export type Statement = readonly [sql: string, ...values: readonly (string | null)[]];

/** A database that has ledgers: SQLite answers at once, PostgreSQL later. */
export interface LedgerDatabase {
  readonly dialect: SqlDialect;
  /** The rows of a statement; without `tx` it commits by itself. */
  query(statement: Statement, tx?: object): Awaitable<readonly unknown[]>;
  /** In the transaction of an endpoint, which commits it with the key; without `tx` in one of its own. */
  transaction<T>(steps: (tx: object) => Steps<T>, tx?: object): Awaitable<T>;
}
