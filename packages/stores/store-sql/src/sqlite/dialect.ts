import { encodeText } from "@countersign/idempotency/store";
import type { SqlDialect } from "../sql/dialect.ts";
import { bound, fragment, raw } from "../sql/sql.ts";
import { assigned, withOnConflict } from "../sql/statements.ts";

/** How SQLite writes the stores' statements. */
export const dialect: SqlDialect = {
  ...withOnConflict,
  hasReturning: true,
  hasPartialIndexes: true,
  types: {
    digest: "BLOB",
    mark: "BLOB",
    queue: "TEXT",
    text: "TEXT",
    body: "TEXT",
    state: "TEXT CHECK (state IN ('open', 'dead', 'done'))",
    count: "INTEGER",
    bigint: "INTEGER",
    keyState: "TEXT CHECK (state IN ('running', 'held', 'done', 'free'))",
    recovery: "TEXT CHECK (recovery IN ('hold', 'rerun'))",
    instant: "INTEGER",
    bytes: "BLOB",
  },
  // As a text: libsql takes bytes that are the only value for named values.
  digest: (hex) => fragment`unhex(${bound(hex)})`,
  integer: (value) => bound(value),
  text: (value) => bound(value),
  bytes: (value) => bound(Buffer.from(value)),
  readText: String,
  greatest: "max",
  until: "until_ms",
  once: (now) => now,
  state: (state) => raw(`'${state}'`),
  after: (instant, durationMs) => fragment`${instant} + ${bound(durationMs)}`,
  microseconds: (instant) => fragment`(${instant} * 1000)`,
  milliseconds: (instant, now) => fragment`(${instant} - ${now})`,
  ids: {
    nonce: ({ scope, nonce }) => ({ scope: bound(encodeText(scope)), nonce: bound(encodeText(nonce)) }),
    key: (key) => ({ key: bound(encodeText(key)) }),
    response: (token) => ({ token: bound(encodeText(token)) }),
  },
  named: () => ({}),
  update: ({ of, set, where }) => fragment`UPDATE ${raw(of)} SET ${assigned(set)} WHERE ${where}`,
};
