import type { Row } from "../store-parts/list-query.ts";
import type { StatementGate } from "./statement-gate.ts";

/** What a statement's parameter can be. */
export type SqlValue = string | number | boolean | Uint8Array | null;

/** The transaction of a change. An object, since a `tx` that a caller forgot must not become a change that commits alone. */
export interface Within<Tx> {
  readonly tx: Tx;
}

/** A pool of connections. */
export interface ConnectionPool {
  /** The pool itself, by which two databases on the same one are known. */
  readonly of: object;
  /** How many connections it has at most. */
  readonly size: number;
}

/**
 * The user's own database library, by which stores and handlers share one transaction; made by `fromPg`, `fromPrisma` and their like.
 * Statements have the dialect's own placeholders, `$1` or `?`, each used once and in order. Errors come as the library throws them.
 */
export interface Database<Tx> {
  readonly dialect: "postgresql" | "mysql";
  /** As messages name it, such as `Prisma`. */
  readonly library: string;
  /**
   * On PostgreSQL: whether run() rejects with SQLSTATE 25P02 when COMMIT was answered with ROLLBACK. Where not, the store commits and looks
   * before the library does: one or two messages more.
   */
  readonly tellsRollback?: boolean | undefined;
  /**
   * On PostgreSQL: whether whatever commits rejects with SQLSTATE 08007 when its wait for a synchronous standby was cancelled. The server
   * tells that by a warning alone. Where not, the store commits once more on servers with such standbys: that wait confirms the first.
   */
  readonly tellsUnconfirmed?: boolean | undefined;
  /**
   * On MySQL: whether change() by itself rejects where the server says that its connection has a transaction open. Where not, the store
   * opens a transaction for it: two messages more.
   */
  readonly tellsOpen?: boolean | undefined;
  /** The pool from which run() takes its connection, with their number. Undefined where the library does not tell, or not yet. */
  pool?(): ConnectionPool | undefined;
  /**
   * Runs `work` once between BEGIN and COMMIT. Resolves to its result after COMMIT was answered; rolls back and rejects with its own error
   * when it rejects. Never repeats it.
   */
  run<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /**
   * The gate that the statements pass which a handler sends by this `tx`. Undefined for a `tx` that run() has not made. run() closes it
   * when `work` has settled, and rejects where a statement of the handler was not answered by then.
   */
  gateOf(tx: Tx): StatementGate | undefined;
  /** Sends what the handler has left to the library, such as the unit of work of MikroORM; before the gate is closed. */
  flush?(tx: Tx): Promise<void>;
  /**
   * Sends one statement of the store's own in the transaction, also when the gate is closed. Throws a TypeError, before it sends, on what
   * is no transaction, such as the pool.
   */
  query(tx: Tx, text: string, values: readonly SqlValue[]): Promise<readonly Row[]>;
  /** Sends one statement outside of any transaction: it commits by itself. */
  alone(text: string, values: readonly SqlValue[]): Promise<readonly Row[]>;
  /**
   * Sends one statement that changes rows, by itself, or as query() does in a transaction; resolves to the number of rows that the server
   * counts. On MySQL and MariaDB, where such a statement gives no rows; the store refuses a database of theirs without it. Whether a
   * row counts that stays as it was is a flag of the connection: the store's statements change what they find.
   */
  change?(text: string, values: readonly SqlValue[], within?: Within<Tx>): Promise<number>;
  /**
   * Sends several statements without parameters in one message, none behind one that fails, and resolves to all of their rows. On MariaDB
   * they are a compound statement; MySQL has none, and is not asked for them. Absent where the library sends single statements.
   */
  script?(tx: Tx, text: string): Promise<readonly Row[]>;
}
