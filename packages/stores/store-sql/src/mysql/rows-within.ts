import { answerOf, type Added, type NewRow, type Row, type Steps } from "@countersign/idempotency/store";
import { KeyRowsWithin } from "../keys/rows-within.ts";
import type { Sql } from "../sql/sql.ts";
import type { Engine } from "./engine.ts";
import { zeroOnSession, type Statement } from "./statement-parts.ts";

/** The rows of keys in a transaction of the library. Those that it finds stay locked, whatever the isolation level. */
export class MysqlRowsWithin<Tx> extends KeyRowsWithin<Tx, "async"> {
  readonly #server: Engine<Tx>;
  readonly #runOf: (tx: Tx) => Uint8Array;

  /** `runOf` gives the bytes of the session that the transaction has taken. */
  constructor(name: string, server: Engine<Tx>, runOf: (tx: Tx) => Uint8Array) {
    super(name, server);
    this.#server = server;
    this.#runOf = runOf;
  }

  /** What {@link KeyRowsWithin.add} sends in one message, for one of somebody else. */
  adding(rows: readonly NewRow[], run: Uint8Array): readonly Statement[] {
    if (rows.length === 0) return [];
    const keys = rows.map(({ key }) => key);
    return [this.sql.addAll(rows, onSession(run)), this.sql.lookAll(keys)].map(statementOf);
  }

  /** What the two have done. An added row is as it was added: no other one has its token in that state. */
  override added(rows: readonly NewRow[], given: readonly Row[]): Required<Added> {
    const found = this.sql.rowsByKey(
      rows.map(({ key }) => key),
      given,
    );
    const isAdded = ({ key, row }: NewRow): boolean => {
      const seen = found.get(key);
      return seen?.token === row.token && seen.state === row.state;
    };
    return { keys: new Set(rows.filter(isAdded).map(({ key }) => key)), found };
  }

  protected override *adds(tx: Tx, rows: readonly NewRow[]): Steps<Added> {
    if (rows.length === 0) return { keys: new Set() };
    const run = this.#runOf(tx);
    if (yield* answerOf(this.#server.sendsScripts())) {
      return this.added(rows, yield* answerOf(this.#server.send(tx, this.store, this.adding(rows, run))));
    }
    const changed = yield* answerOf(
      this.#server.changeIn(tx, this.store, this.sql.addAll(rows, onSession(run))),
    );
    const keys = rows.map(({ key }) => key);
    // One that was there counts twice.
    if (changed === keys.length) return { keys: new Set(keys) };
    return this.added(rows, yield* answerOf(this.#server.queryIn(tx, this.store, this.sql.lookAll(keys))));
  }
}

/** The condition that a statement is on the session of a run; elsewhere the statement fails. */
export function onSession(run: Uint8Array): Sql {
  return { text: `1 + ${zeroOnSession} = 1`, values: [run] };
}

export function statementOf({ text, values }: Sql): Statement {
  return [text, values];
}
