/** A row as the driver returns it, with a member of its own: never spread. */
export type DatabaseRow = Readonly<Record<string, unknown>>;

/** The row of a query that always has one. */
export function rowOf(row: unknown): DatabaseRow {
  if (isRow(row)) return row;
  throw new Error("the database returned no row where there is always one");
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
