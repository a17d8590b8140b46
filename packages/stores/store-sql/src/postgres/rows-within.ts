import type { Database } from "@countersign/idempotency";
import type {
  Added,
  KeyChange,
  NewRow,
  Row,
  RowsWithin,
  Seen,
  SeenRow,
} from "@countersign/idempotency/store";
import { addedOf, addStatement, parametersIn } from "./begin-statement.ts";
import { queryableIn } from "./database-queryable.ts";
import type { Engine } from "./engine.ts";
import { KeyStatements, type KeyStatement } from "./key-statements.ts";
import { rowOf } from "./key-table.ts";
import type { ResolvedPostgresOptions } from "./options.ts";
import { rowsOf } from "./queryable.ts";
import { encodeKey } from "./stored-key.ts";

/** The rows of keys in a transaction of the library. What it looks at is committed, or its own. */
export class PostgresRowsWithin<Tx> implements RowsWithin<Tx> {
  readonly #database: Database<Tx>;
  readonly #options: ResolvedPostgresOptions;
  readonly #sql: KeyStatements;

  constructor(database: Database<Tx>, options: ResolvedPostgresOptions) {
    this.#database = database;
    this.#options = options;
    this.#sql = new KeyStatements(options);
  }

  async add(tx: Tx, rows: readonly NewRow[]): Promise<Added> {
    const { names, now } = this.#options;
    const values: (string | number)[] = [];
    const text = addStatement({ names, place: parametersIn(values), now: now?.() }, rows);
    return addedOf(
      await this.#database.query(tx, text, values),
      rows.map(({ key }) => key),
    );
  }

  async look(tx: Tx, keys: readonly string[]): Promise<ReadonlyMap<string, SeenRow>> {
    return seenRows(keys, (stored) => this.#run(tx, this.#sql.lookAll(stored)));
  }

  async write(tx: Tx, key: string, change: KeyChange, seen: Seen): Promise<boolean> {
    return (await this.#run(tx, this.#sql.writeWithin(encodeKey(key), change, seen))).length > 0;
  }

  async #run(tx: Tx, { text, values }: KeyStatement): Promise<readonly Row[]> {
    return rowsOf(await queryableIn(this.#database, tx).query(text, values));
  }
}

/** Their rows outside of any transaction: each step commits by itself. */
export class PostgresRowsAlone implements Pick<RowsWithin<undefined>, "look" | "write"> {
  readonly #engine: Engine;
  readonly #sql: KeyStatements;
  readonly #store: string;

  constructor(engine: Engine, options: ResolvedPostgresOptions, store: string) {
    this.#engine = engine;
    this.#sql = new KeyStatements(options);
    this.#store = store;
  }

  async look(_tx: undefined, keys: readonly string[]): Promise<ReadonlyMap<string, SeenRow>> {
    return seenRows(keys, (stored) => this.#run(this.#sql.lookAll(stored)));
  }

  async write(_tx: undefined, key: string, change: KeyChange, seen: Seen): Promise<boolean> {
    return (await this.#run(this.#sql.write(encodeKey(key), change, seen))).length > 0;
  }

  async #run({ text, values }: KeyStatement): Promise<readonly Row[]> {
    return this.#engine.run(this.#store, text, values);
  }
}

async function seenRows(
  keys: readonly string[],
  look: (stored: readonly string[]) => Promise<readonly Row[]>,
): Promise<ReadonlyMap<string, SeenRow>> {
  const names = new Map(keys.map((key) => [encodeKey(key), key]));
  const rows = keys.length === 0 ? [] : await look([...names.keys()]);
  return new Map(rows.map((row) => [names.get(String(row["key"])) ?? "", rowOf(row)]));
}
