import { decodeText, encodeText } from "@countersign/store-core";
import type { PostgresQueryable } from "@countersign/store-postgres";

/** What the ledgers bind to a statement. */
type Value = string | number | null;

/** Runs a statement with a `?` for each value, and gives its rows. */
export async function query(
  connection: PostgresQueryable,
  statement: string,
  values: readonly Value[] = [],
): Promise<readonly unknown[]> {
  const { rows } = await connection.query(numbered(statement), values.map(stored));
  return rows.map(read);
}

/** The statement with `$1`, `$2`, … for its `?`. No literal of a statement holds one. */
export function numbered(statement: string): string {
  let count = 0;
  return statement.replaceAll("?", () => {
    count += 1;
    return `$${count}`;
  });
}

// PostgreSQL takes no NUL, and the driver sends one and the same letter for all lone surrogates: two keys would become one.
function stored(value: Value): Value {
  return typeof value === "string" ? encodeText(value) : value;
}

function read(row: unknown): unknown {
  if (typeof row !== "object" || row === null) throw new Error("the PostgreSQL driver gave no row");
  return Object.fromEntries(
    Object.entries(row).map(([name, value]: [string, unknown]) => [
      name,
      typeof value === "string" ? decodeText(value) : value,
    ]),
  );
}
