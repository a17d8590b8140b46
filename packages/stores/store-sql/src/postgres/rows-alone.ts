import type { KeyChange, RowsWithin, Seen, SeenRow } from "@countersign/idempotency/store";
import { fenceAfter, KeyStatements } from "../keys/key-statements.ts";
import type { Engine } from "./engine.ts";

/** The rows of keys outside of any transaction: each step commits by itself. */
export class PostgresRowsAlone<Tx> implements Pick<RowsWithin<undefined>, "look" | "write"> {
  readonly #engine: Engine<Tx>;
  readonly #sql: KeyStatements;
  readonly #store: string;

  constructor(engine: Engine<Tx>, store: string) {
    this.#engine = engine;
    this.#sql = new KeyStatements(engine);
    this.#store = store;
  }

  async look(_tx: undefined, keys: readonly string[]): Promise<ReadonlyMap<string, SeenRow>> {
    if (keys.length === 0) return new Map();
    return this.#sql.rowsByKey(keys, await this.#engine.read(this.#store, this.#sql.lookAll(keys)));
  }

  async write(_tx: undefined, key: string, change: KeyChange, seen: Seen): Promise<boolean> {
    const step = { change, seen, fence: fenceAfter(change, seen) };
    const write = await this.#engine.changeOne(
      this.#store,
      (guard) => this.#sql.write(key, step, guard),
      step,
    );
    return write !== undefined;
  }
}
