import type { Columns, SqlDialect } from "./dialect.ts";
import { fragment, joined, raw, type Sql } from "./sql.ts";

/** Assignments of an UPDATE. */
export function assigned(set: Columns, prefix = ""): Sql {
  return joined(Object.entries(set).map(([column, value]) => fragment`${raw(prefix + column)} = ${value}`));
}

/** The condition that columns have these values. */
export function equal(columns: Columns, prefix = ""): Sql {
  const parts = Object.entries(columns).map(
    ([column, value]) => fragment`${raw(prefix + column)} = ${value}`,
  );
  return joined(parts, " AND ");
}

/** The condition that a column has one of these values. */
export function isOneOf(column: Sql, values: readonly Sql[]): Sql {
  return fragment`${column} IN (${joined(values)})`;
}

type Inserts = "insert" | "onConflict" | "unlessThere" | "orLock" | "stored" | "proposed";

/** An INSERT and its ends as PostgreSQL and SQLite write them. */
export const withOnConflict: Pick<SqlDialect, Inserts> = {
  insert: (into, rows, guard) => {
    const [first = {}, ...others] = rows;
    const columns = raw(Object.keys(first).join(", "));
    const lists = rows.map((row) => joined(Object.values(row)));
    const source =
      others.length === 0
        ? fragment`SELECT ${joined(lists)}`
        : fragment`SELECT * FROM (VALUES ${joined(lists.map((list) => fragment`(${list})`))}) AS item`;
    return fragment`INSERT INTO ${raw(into)} AS stored (${columns})
${source} WHERE ${guard}`;
  },
  onConflict: ({ key, set, where }) => {
    const condition = where === undefined ? raw("") : fragment` WHERE ${where}`;
    return fragment`ON CONFLICT (${raw(key.join(", "))}) DO UPDATE SET ${assigned(set)}${condition}`;
  },
  unlessThere: (key) => raw(`ON CONFLICT (${key.join(", ")}) DO NOTHING`),
  orLock: (key) => raw(`ON CONFLICT (${key.join(", ")}) DO NOTHING RETURNING ${key[0]} AS added`),
  stored: (column) => raw(`stored.${column}`),
  proposed: (column) => raw(`excluded.${column}`),
};
