import type Database from "libsql";

/** A row as the driver returns it, with a member of its own: never spread. */
export type DatabaseRow = Readonly<Record<string, unknown>>;

/** Values of the `:name`s in a statement; undefined, and a name that is missing, is NULL. */
type Values = Readonly<Record<string, unknown>>;

/** Runs statements on a database, each prepared at its first use. Throws when the database is closed. */
export class Sql {
  readonly #database: Database.Database;
  readonly #prepared = new Map<string, Database.Statement>();

  constructor(database: Database.Database) {
    this.#database = database;
  }

  run(statement: string, values: Values = {}): Database.RunResult {
    return this.#prepare(statement).run(values);
  }

  rows(statement: string, values: Values = {}): readonly DatabaseRow[] {
    return this.#prepare(statement).all(values).filter(isRow);
  }

  /** The first row; undefined where there is none. */
  find(statement: string, values: Values = {}): DatabaseRow | undefined {
    const row = this.#prepare(statement).get(values);
    return isRow(row) ? row : undefined;
  }

  /** The row of a query that always has one. */
  row(statement: string, values?: Values): DatabaseRow {
    const row = this.find(statement, values);
    if (row === undefined) throw new Error("the database returned no row where there is always one");
    return row;
  }

  /**
   * Runs `work`, which must be synchronous, in the open transaction or in one of its own that takes the write lock at once.
   */
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

/** A column that is always text. */
export function textOf(row: DatabaseRow, column: string): string {
  const value = row[column];
  if (typeof value === "string") return value;
  throw new Error(`the database returned no text in ${column}`);
}

/** A column that is always a number. */
export function numberOf(row: DatabaseRow, column: string): number {
  const value = row[column];
  if (typeof value === "number") return value;
  throw new Error(`the database returned no number in ${column}`);
}

/** A column that is a number or NULL. */
export function optionalNumberOf(row: DatabaseRow, column: string): number | undefined {
  return row[column] === null ? undefined : numberOf(row, column);
}

function isRow(row: unknown): row is DatabaseRow {
  return typeof row === "object" && row !== null;
}
