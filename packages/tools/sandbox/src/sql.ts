// oxlint-disable typescript/no-unnecessary-type-parameters -- the caller says what the rows of a statement are
import type Database from "libsql";

/** Values of the `:name`s in a statement; undefined, and a name that is missing, is NULL. */
type Values = Readonly<Record<string, unknown>>;

/** Prepares each statement once; throws when closed. `Row` is trusted: STRICT tables, no other writer. NULL columns are left out. */
export class Sql {
  readonly #database: Database.Database;
  readonly #prepared = new Map<string, Database.Statement>();

  constructor(database: Database.Database) {
    this.#database = database;
  }

  run(statement: string, values: Values = {}): Database.RunResult {
    return this.#prepare(statement).run(values);
  }

  rows<Row>(statement: string, values: Values = {}): readonly Row[] {
    return this.#prepare(statement)
      .all(values)
      .map(columnsOf<Row>);
  }

  find<Row>(statement: string, values?: Values): Row | undefined {
    return this.rows<Row>(statement, values)[0];
  }

  /** The query must have a row. */
  row<Row>(statement: string, values?: Values): Row {
    const row = this.find<Row>(statement, values);
    if (row === undefined) throw new Error("the database returned no row where there is always one");
    return row;
  }

  /** Runs synchronous `work` in the open transaction, or in one of its own that takes the write lock at once. */
  atomically<T>(work: () => T): T {
    // The driver ends the whole process when a closed database is asked for its transaction.
    this.#assertOpen();
    return this.#database.inTransaction ? work() : this.#database.transaction(work).immediate();
  }

  #prepare(statement: string): Database.Statement {
    this.#assertOpen();
    const known = this.#prepared.get(statement);
    if (known !== undefined) return known;
    const prepared = this.#database.prepare(statement);
    this.#prepared.set(statement, prepared);
    return prepared;
  }

  #assertOpen(): void {
    if (!this.#database.open) throw new Error("the database is closed, and so is the service on it");
  }
}

function columnsOf<Row>(row: unknown): Row {
  // The driver adds a member of its own.
  const columns = Object.entries(Object(row)).filter(
    ([name, value]) => name !== "_metadata" && value !== null,
  );
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- see Sql
  return Object.fromEntries(columns) as Row;
}
