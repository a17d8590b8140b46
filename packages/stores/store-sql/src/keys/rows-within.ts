import type { TransactionMode } from "@countersign/idempotency";
import {
  answerOf,
  runStepsIn,
  type Added,
  type KeyChange,
  type NewRow,
  type Returned,
  type Row,
  type RowsWithin,
  type Seen,
  type SeenRow,
  type Steps,
} from "@countersign/idempotency/store";
import type { SqlEngine } from "../sql/engine.ts";
import { raw } from "../sql/sql.ts";
import { fenceAfter, KeyStatements } from "./key-statements.ts";

/** The rows of keys in a transaction. What it looks at has committed, or is its own. */
export class KeyRowsWithin<Tx, Mode extends TransactionMode = TransactionMode> implements RowsWithin<Tx> {
  readonly sql: KeyStatements;
  protected readonly store: string;
  readonly #server: SqlEngine<Tx, Mode>;

  constructor(store: string, server: SqlEngine<Tx, Mode>) {
    this.store = store;
    this.#server = server;
    this.sql = new KeyStatements(server);
  }

  /** Which of the rows were added, by what {@link KeyStatements.addAll} has given. */
  added(rows: readonly NewRow[], given: readonly Row[]): Added {
    const added = new Set(given.map((row) => row["added"]));
    return {
      keys: new Set(rows.map(({ key }) => key).filter((key) => added.has(this.#server.keys.keyText(key)))),
    };
  }

  add(tx: Tx, rows: readonly NewRow[]): Returned<Mode, Added> {
    return this.#run(this.adds(tx, rows));
  }

  look(tx: Tx, keys: readonly string[]): Returned<Mode, ReadonlyMap<string, SeenRow>> {
    return this.#run(this.#look(tx, keys));
  }

  write(tx: Tx, key: string, change: KeyChange, seen: Seen): Returned<Mode, boolean> {
    return this.#run(this.#write(tx, key, change, seen));
  }

  #run<T>(steps: Steps<T>): Returned<Mode, T> {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what the mode says
    return runStepsIn(this.#server.mode, steps) as Returned<Mode, T>;
  }

  protected *adds(tx: Tx, rows: readonly NewRow[]): Steps<Added> {
    const [first, ...others] = rows;
    if (first === undefined) return { keys: new Set() };
    if (others.length === 0) {
      // The number of changed rows is enough: SQLite's drivers take twice as long for a statement that gives rows.
      const changed = yield* answerOf(this.#server.changeIn(tx, this.store, this.sql.addOne(first)));
      return { keys: new Set(changed > 0 ? [first.key] : []) };
    }
    return this.added(
      rows,
      yield* answerOf(this.#server.queryIn(tx, this.store, this.sql.addAll(rows, raw("1 = 1")), rows.length)),
    );
  }

  *#look(tx: Tx, keys: readonly string[]): Steps<ReadonlyMap<string, SeenRow>> {
    if (keys.length === 0) return new Map();
    return this.sql.rowsByKey(
      keys,
      yield* answerOf(this.#server.queryIn(tx, this.store, this.sql.lookAll(keys), keys.length)),
    );
  }

  *#write(tx: Tx, key: string, change: KeyChange, seen: Seen): Steps<boolean> {
    const step = { change, seen, fence: fenceAfter(change, seen) };
    return (yield* answerOf(this.#server.changeIn(tx, this.store, this.sql.write(key, step)))) > 0;
  }
}
