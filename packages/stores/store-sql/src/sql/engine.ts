import type { Awaitable, TransactionMode } from "@countersign/idempotency";
import type { Row, SeenRow, StoreGate } from "@countersign/idempotency/store";
import type { SqlDialect } from "./dialect.ts";
import type { KeyParts } from "./key-parts.ts";
import type { Sql } from "./sql.ts";

/** The quoted names of the tables that every engine has. */
interface SqlTables {
  readonly idempotency: string;
  readonly nonces: string;
  /** The responses of done keys. */
  readonly answers: string;
}

/** A step in the caller's transaction. */
export interface StepIn<Tx> {
  readonly tx: Tx;
  /** Begins messages. */
  readonly store: string;
  /** What the caller has called. */
  readonly step: string;
}

/** A statement that changes one row of a key, or none. */
export interface ChangeOfOne {
  /** Of the row after the change. Undefined where the statement decides: then it gives the fence back. */
  readonly fence: number | undefined;
  /** True for a heartbeat, which must not wait for a transaction that has its row: it fails without harm, as the next one comes soon. */
  readonly isHeartbeat?: boolean;
}

/** Makes a statement with this condition on each row that it writes. The condition may fail instead of being false. */
export type Guarded = (guard: Sql) => Sql;

/** How an engine runs the statements of the stores. It decides nothing. */
export interface SqlEngine<Tx = never, Mode extends TransactionMode = TransactionMode> {
  /** One word for metrics, such as `postgresql`. */
  readonly engine: string;
  readonly mode: Mode;
  /** Begins the names of stores in messages. */
  readonly name: string;
  /** The function that has made the stores: the `guard` of notices. */
  readonly factory: string;
  readonly dialect: SqlDialect;
  readonly names: SqlTables;
  /** What the engine has of its own in the statements of keys. */
  readonly keys: KeyParts;
  /** Milliseconds between two prunings; 0 for none. */
  readonly pruneIntervalMs: number;
  /** How many rows one step of a pruning removes: between two steps nothing is locked. */
  readonly pruneBatchSize: number;
  /** Of an engine with one connection: refuses calls while that must not be used. `store` begins messages. */
  createGate?(store: string): StoreGate;
  /** Of an engine with one connection: true while somebody's transaction is open on it, which a timer must neither join nor fail. */
  isOccupied?(): boolean;
  /** "Now": the engine's clock, or the one of the options as a value. */
  now(): Sql;
  /** True in a statement that commits by itself; {@link SqlEngine.read} throws where a column `is_alone` says otherwise. */
  readonly isAlone: Sql;
  /** True where the guard of a statement fails instead of being false, or no transaction can be somebody else's. */
  readonly guardFails: boolean;
  /** Runs a statement that reads what has committed. `most`: how many rows it gives at most. */
  read(store: string, statement: Sql, most?: number): Awaitable<readonly Row[]>;
  /**
   * Runs a statement that changes rows and commits by itself. In somebody's transaction it changes nothing: it throws, or returns 0, and a
   * read then throws. Returns the number of changed rows, as the dialect counts them.
   */
  change(store: string, statement: Guarded): Awaitable<number>;
  /** The same of one row of a key. Returns its fence, or undefined where nothing was written. */
  changeOne(store: string, statement: Guarded, change: ChangeOfOne): Awaitable<number | undefined>;
  /**
   * Reads a row that was found done so that it cannot be rolled back any more, where a plain read may find what has not committed. Returns
   * it, undefined where it is gone, or `changed` where it is another one.
   */
  confirmDone?(store: string, key: string, seen: SeenRow): Awaitable<SeenRow | undefined | "changed">;
  /** Runs a statement in a transaction that begin() has begun. `most`: how many rows it gives at most. */
  queryIn(tx: Tx, store: string, statement: Sql, most?: number): Awaitable<readonly Row[]>;
  /** The same of one that changes rows. Returns how many. */
  changeIn(tx: Tx, store: string, statement: Sql): Awaitable<number>;
  /** Runs a statement that changes rows in the caller's transaction. Throws where none is open, and changes nothing. */
  changeWithin(step: StepIn<Tx>, statement: Guarded): Awaitable<number>;
  /** The error of a statement that had to change a row, and has changed none. */
  unwritten(store: string): Error;
  /** Removes at most `pruneBatchSize` rows, none that is locked, in one commit. Returns their columns. */
  removeBatch(store: string, expired: Expired): Awaitable<readonly Row[]>;
}

/** Rows that have expired. */
export interface Expired {
  /** The quoted name of the table. */
  readonly table: string;
  /** The columns of its primary key. */
  readonly key: readonly string[];
  /** The column by which an index finds the rows. */
  readonly until: string;
  /** A condition, by the engine's time. */
  readonly isExpired: (now: Sql) => Sql;
  /** True for the table of keys: the same commit keeps the highest fence of the rows, and `state` and `fence` are their columns. */
  readonly areKeys?: boolean;
}
