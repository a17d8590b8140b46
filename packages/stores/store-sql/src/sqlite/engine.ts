import type { Row, StoreGate } from "@countersign/idempotency/store";
import type { ChangeOfOne, Expired, Guarded, SqlEngine, StepIn } from "../sql/engine.ts";
import type { KeyParts } from "../sql/key-parts.ts";
import { bound, fragment, raw, type Sql } from "../sql/sql.ts";
import {
  assertConnection,
  createGate,
  integerOf,
  isInTransaction,
  singleRow,
  withImmediateTransaction,
  type SqliteDatabase,
  type SqliteStatement,
} from "./connection.ts";
import { dialect } from "./dialect.ts";
import { keyParts } from "./key-parts.ts";
import type { ResolvedSqliteOptions } from "./options.ts";
import { engineClock, tableNames } from "./schema.ts";

const always = raw("1 = 1");

// The texts of the stores are few; those of tasks differ by the number of their tasks alone.
const mostPrepared = 300;

/** Runs the stores' statements on a connection, each in one turn. */
export class Engine<Db extends SqliteDatabase> implements SqlEngine<Db, "sync"> {
  readonly engine = "sqlite";
  readonly mode = "sync";
  readonly name = "sqlite";
  readonly factory: string;
  readonly pruneIntervalMs: number;
  /** Meanwhile this process does nothing else, and no other process writes. */
  readonly pruneBatchSize = 100;
  readonly dialect = dialect;
  readonly guardFails = true;
  /** The gates keep every step out of somebody's transaction. */
  readonly isAlone: Sql = always;
  readonly database: Db;
  readonly names: ReturnType<typeof tableNames>;
  readonly keys: KeyParts;
  readonly #now: () => number | null;
  /** Statements belong to the connection that prepared them. */
  readonly #prepared = new Map<string, SqliteStatement<unknown>>();

  /** `factory` is named in notices. */
  constructor(database: Db, options: ResolvedSqliteOptions, factory: string) {
    this.database = database;
    this.factory = factory;
    this.pruneIntervalMs = options.pruneIntervalMs;
    this.names = tableNames(options.table);
    this.keys = keyParts(this.names);
    this.#now = options.now;
  }

  /** Milliseconds since 1970. */
  now(): Sql {
    const nowMs = this.#now();
    return nowMs === null ? raw(engineClock) : bound(nowMs);
  }

  /** The same, read once: in a row of statements each would read a clock of its own. */
  instant(): Sql {
    const [read] = this.#now() === null ? this.query(raw(`SELECT ${engineClock} AS now_ms`), 1) : [];
    return read === undefined ? this.now() : bound(integerOf(read["now_ms"]));
  }

  createGate(store: string): StoreGate {
    return createGate(store, this.database);
  }

  isOccupied(): boolean {
    return isInTransaction(this.database);
  }

  read(_store: string, statement: Sql, most?: number): readonly Row[] {
    return this.query(statement, most);
  }

  change(_store: string, statement: Guarded): number {
    return withImmediateTransaction(this.database, () => this.run(statement(always)));
  }

  changeOne(_store: string, statement: Guarded, { fence }: ChangeOfOne): number | undefined {
    return withImmediateTransaction(this.database, () => {
      // A statement without rows takes half the time.
      if (fence !== undefined) return this.run(statement(always)) > 0 ? fence : undefined;
      const [written] = this.query(fragment`${statement(always)} RETURNING fence`, 1);
      return written && integerOf(written["fence"]);
    });
  }

  queryIn(_tx: Db, _store: string, statement: Sql, most?: number): readonly Row[] {
    return this.query(statement, most);
  }

  changeIn(_tx: Db, _store: string, statement: Sql): number {
    return this.run(statement);
  }

  changeWithin({ tx, store, step }: StepIn<Db>, statement: Guarded): number {
    assertConnection(store, this.database, tx);
    // On its own it would commit at once, and stay when the payment is rolled back.
    if (!isInTransaction(this.database)) throw new Error(`${store}: ${step} needs an open transaction`);
    return this.run(statement(always));
  }

  unwritten(store: string): Error {
    return new Error(`${store}: SQLite did not write a row; look for triggers`);
  }

  removeBatch(_store: string, { table, key, until, isExpired, areKeys }: Expired): readonly Row[] {
    const [from, columns] = [raw(table), raw(key.join(", "))];
    return withImmediateTransaction(this.database, () => {
      const removed = this.query(
        fragment`DELETE FROM ${from} WHERE (${columns}) IN (
  SELECT ${columns} FROM ${from} WHERE ${isExpired(this.now())} ORDER BY ${raw(until)} LIMIT ${bound(this.pruneBatchSize)})
RETURNING ${raw(areKeys === true ? "state, fence" : "1 AS removed")}`,
      );
      const fences = areKeys === true ? removed.map((row) => integerOf(row["fence"])) : [];
      if (fences.length > 0) this.#raiseFenceFloor(Math.max(...fences));
      return removed;
    });
  }

  /** Runs a statement in whatever is open. Returns its rows: one at most takes half the time. */
  query({ text, values }: Sql, most = Infinity): readonly Row[] {
    return this.#with(text, (statement) => {
      if (most > 1) return statement.all(...values).map(singleRow);
      const row = statement.get(...values);
      return row === undefined || row === null ? [] : [singleRow(row)];
    });
  }

  /** Runs a statement without rows in whatever is open. Returns how many rows it has changed. */
  run({ text, values }: Sql): number {
    return this.#with(text, (statement) => Number(statement.run(...values).changes));
  }

  #raiseFenceFloor(fence: number): void {
    this.run(
      fragment`UPDATE ${raw(this.names.schema)} SET fence_floor = max(fence_floor, ${bound(fence)}) WHERE id = 1`,
    );
  }

  /** Forgets a statement that has failed: libsql's get() would next execute it with the values that have failed. */
  #with<T>(text: string, call: (statement: SqliteStatement<unknown>) => T): T {
    try {
      return call(this.#prepared.get(text) ?? this.#prepare(text));
    } catch (error) {
      this.#prepared.delete(text);
      throw error;
    }
  }

  #prepare(text: string): SqliteStatement<unknown> {
    if (this.#prepared.size >= mostPrepared) this.#prepared.clear();
    const prepared = this.database.prepare(text);
    this.#prepared.set(text, prepared);
    return prepared;
  }
}
