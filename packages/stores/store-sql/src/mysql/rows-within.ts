import type {
  Added,
  KeyChange,
  NewRow,
  Row,
  RowsWithin,
  Seen,
  SeenRow,
} from "@countersign/idempotency/store";
import type { Engine } from "./engine.ts";
import type { KeyStatements } from "./key-statements.ts";
import { fenceAfter, rowOf } from "./key-table.ts";
import type { Statement } from "./statement-parts.ts";
import { digestOf, hexOf } from "./values.ts";

/** The rows of keys in a transaction of the library. Those that it finds stay locked, whatever the isolation level. */
export class MysqlRowsWithin<Tx> implements RowsWithin<Tx> {
  readonly #name: string;
  readonly #server: Engine<Tx>;
  readonly #sql: KeyStatements;
  readonly #runOf: (tx: Tx) => Uint8Array;

  /** `runOf` gives the bytes of the session that the transaction has taken. */
  constructor(name: string, server: Engine<Tx>, sql: KeyStatements, runOf: (tx: Tx) => Uint8Array) {
    this.#name = name;
    this.#server = server;
    this.#sql = sql;
    this.#runOf = runOf;
  }

  /** What {@link add} sends in one message, for one of somebody else. */
  adding(rows: readonly NewRow[], run: Uint8Array): readonly Statement[] {
    if (rows.length === 0) return [];
    return [this.#sql.addAll(rows, run), this.#sql.lookAll(rows.map(({ key }) => key))];
  }

  /** What they have done. An added row is as it was added: no other one has its token in that state. */
  added(rows: readonly NewRow[], answer: readonly Row[]): Required<Added> {
    const found = new Map(
      rowsByKey(
        rows.map(({ key }) => key),
        answer,
      ),
    );
    const isAdded = ({ key, row }: NewRow): boolean => {
      const seen = found.get(key);
      return seen?.token === row.token && seen.state === row.state;
    };
    const keys = rows.filter(isAdded).map(({ key }) => key);
    return { keys: new Set(keys), found };
  }

  async add(tx: Tx, rows: readonly NewRow[]): Promise<Added> {
    if (rows.length === 0) return { keys: new Set() };
    const run = this.#runOf(tx);
    if (await this.#server.sendsScripts()) {
      return this.added(rows, await this.#server.send(tx, this.#name, this.adding(rows, run)));
    }
    const changed = await this.#server.changeIn(tx, this.#name, ...this.#sql.addAll(rows, run));
    const keys = rows.map(({ key }) => key);
    // One that was there counts twice.
    if (changed === keys.length) return { keys: new Set(keys) };
    return this.added(rows, await this.#server.send(tx, this.#name, [this.#sql.lookAll(keys)]));
  }

  async look(tx: Tx, keys: readonly string[]): Promise<ReadonlyMap<string, SeenRow>> {
    return rowsByKey(keys, await this.#server.send(tx, this.#name, [this.#sql.lookAll(keys)]));
  }

  async write(tx: Tx, key: string, change: KeyChange, seen: Seen): Promise<boolean> {
    const step = { change, seen, fence: fenceAfter(change, seen) };
    return (await this.#server.changeIn(tx, this.#name, ...this.#sql.writeWithin(key, step))) > 0;
  }
}

function rowsByKey(keys: readonly string[], answer: readonly Row[]): ReadonlyMap<string, SeenRow> {
  const rows = new Map(
    answer.flatMap((row) => (row["key"] === undefined ? [] : [[row["key"], row] as const])),
  );
  return new Map(
    keys.flatMap((key) => {
      const row = rows.get(hexOf(digestOf(key)));
      return row === undefined ? [] : [[key, rowOf(row)] as const];
    }),
  );
}
