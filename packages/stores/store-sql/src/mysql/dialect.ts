import type { SqlDialect } from "../sql/dialect.ts";
import { bound, fragment, joined, raw } from "../sql/sql.ts";
import { assigned } from "../sql/statements.ts";
import { bytesOf, digestOf, storedBytes } from "./values.ts";

/**
 * How MySQL and MariaDB write the stores' statements. No session's sql_mode changes what they do: no text is too long for its column, and no
 * assignment depends on whether it reads what another one has assigned.
 */
export const dialect: SqlDialect = {
  hasReturning: false,
  hasPartialIndexes: false,
  types: {
    digest: "BINARY(32)",
    mark: "BINARY(16)",
    queue: "VARBINARY(64)",
    // 513 characters, each as an escape.
    text: "VARBINARY(3078)",
    body: "MEDIUMBLOB",
    state: "ENUM('open', 'dead', 'done')",
    count: "INT",
    bigint: "BIGINT",
    keyState: "ENUM('free', 'running', 'held', 'done')",
    recovery: "ENUM('hold', 'rerun')",
    instant: "BIGINT",
    bytes: "LONGBLOB",
  },
  digest: (hex) => bound(Buffer.from(hex, "hex")),
  integer: (value) => bound(value),
  // Bytes: a string would pass through the character set and the escapes of the session.
  text: (value) => bound(Buffer.from(value, "utf8")),
  bytes: (value) => bound(Buffer.from(value)),
  readText: (value) => (typeof value === "string" ? value : storedBytes(value).toString("utf8")),
  greatest: "GREATEST",
  until: "until_us",
  once: (now) => now,
  state: (state) => raw(`'${state}'`),
  // In SQL, since the greatest ones are no safe integers any more.
  after: (instant, durationMs) => fragment`${instant} + ${bound(durationMs)} * 1000`,
  microseconds: (instant) => instant,
  milliseconds: (instant, now) => fragment`CEILING((${instant} - ${now}) / 1000)`,
  ids: {
    nonce: ({ scope, nonce }) => ({ digest: bound(digestOf(scope, nonce)) }),
    key: (key) => ({ digest: bound(digestOf(key)) }),
    response: (token) => ({ digest: bound(digestOf(token)) }),
  },
  named: (key) => ({ name: bound(bytesOf(key)) }),
  insert: (into, rows, guard) => {
    const [columns = {}] = rows;
    const values = rows.map((row, index) => {
      const [first = raw("NULL"), ...others] = Object.values(row);
      // One row that fails is enough.
      const guarded = index === 0 ? fragment`CASE WHEN ${guard} THEN ${first} END` : first;
      return fragment`(${joined([guarded, ...others])})`;
    });
    return fragment`INSERT INTO ${raw(into)} (${raw(Object.keys(columns).join(", "))}) VALUES ${joined(values, ",\n  ")}`;
  },
  unlessThere: () => raw(""),
  // A row that it finds counts twice: its version changes.
  orLock: () => raw("ON DUPLICATE KEY UPDATE version = version + 1"),
  // By the primary key: an index of the states would lock it after its entry, and others lock it before.
  update: ({ of, set, where, guard }) => {
    const { version = raw("version + 1"), ...others } = set;
    const guarded = guard === undefined ? version : fragment`CASE WHEN ${guard} THEN ${version} END`;
    return fragment`UPDATE ${raw(of)} FORCE INDEX (PRIMARY) SET ${assigned({ version: guarded, ...others })} WHERE ${where}`;
  },
  // Not INSERT IGNORE: it locks what it finds for reading, and of two that then write both wait for each other. The touched column changes by a
  // microsecond at least, so that the number of changed rows tells a new row from one that was there, whatever the connection counts.
  onConflict: ({ set, where, touched }) => {
    const assignments = Object.entries(set).map(([name, value]) => {
      const column = raw(name);
      const next = where === undefined ? value : fragment`IF(${where}, ${value}, ${column})`;
      return fragment`${column} = ${name === touched ? fragment`GREATEST(${column} + 1, ${next})` : next}`;
    });
    return fragment`ON DUPLICATE KEY UPDATE ${joined(assignments)}`;
  },
  stored: (column) => raw(column),
  // The name of a new row would be another one on each of the two.
  proposed: (_column, value) => value,
};
