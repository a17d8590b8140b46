import type { Database } from "@countersign/idempotency";
import type { Added, KeyChange, NewRow, RowsWithin, Seen, SeenRow } from "@countersign/idempotency/store";
import { addedOf, addStatement, parametersIn } from "./begin-statement.ts";
import { queryableIn } from "./database-queryable.ts";
import { KeyStatements } from "./key-statements.ts";
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
    const names = new Map(keys.map((key) => [encodeKey(key), key]));
    const { text, values } = this.#sql.lookAll([...names.keys()]);
    const rows = rowsOf(await queryableIn(this.#database, tx).query(text, values));
    return new Map(rows.map((row) => [names.get(String(row["key"])) ?? "", rowOf(row)]));
  }

  async write(tx: Tx, key: string, change: KeyChange, seen: Seen): Promise<boolean> {
    const { text, values } = this.#sql.writeWithin(encodeKey(key), change, seen);
    return rowsOf(await queryableIn(this.#database, tx).query(text, values)).length > 0;
  }
}
