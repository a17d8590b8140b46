import { encodeText } from "@countersign/idempotency/store";
import type { SqlDialect } from "../sql/dialect.ts";
import { bound, fragment, raw, type Sql } from "../sql/sql.ts";
import { assigned, withOnConflict } from "../sql/statements.ts";
import { microseconds } from "./statement-parts.ts";
import { quoteLiteral } from "./table-names.ts";
import { digestNonce, encodeKey } from "./stored-key.ts";

const textType = 'text COLLATE "C"';

/** How PostgreSQL writes the stores' statements. Each value has a type: the server finds none for those of a SELECT. */
export const dialect: SqlDialect = {
  ...withOnConflict,
  hasReturning: true,
  hasPartialIndexes: true,
  types: {
    digest: "bytea",
    mark: "bytea",
    queue: textType,
    text: textType,
    body: textType,
    state: `${textType} CHECK (state IN ('open', 'dead', 'done'))`,
    count: "integer",
    bigint: "bigint",
    keyState: `${textType} CHECK (state IN ('running', 'held', 'done', 'free'))`,
    recovery: `${textType} CHECK (recovery IN ('hold', 'rerun'))`,
    instant: "timestamptz",
    bytes: "bytea",
  },
  digest: (hex) => fragment`${bound(Buffer.from(hex, "hex"))}::bytea`,
  // As a text: drivers differ in what they send for a number.
  integer: (value) => fragment`${bound(String(value))}::text::bigint`,
  text: (value) => fragment`${bound(value)}::text`,
  bytes: (value) => fragment`${bound(Buffer.from(value))}::bytea`,
  readText: String,
  greatest: "greatest",
  until: "until_at",
  once: (now) => fragment`(SELECT ${now})`,
  // A literal: a partial index serves no parameter.
  state: (state) => raw(quoteLiteral(state)),
  // Up to the greatest safe integer. A literal takes no more than 24 days in PostgreSQL 13 and 14.
  after: (instant, durationMs) =>
    fragment`${instant} + ${bound(durationMs)}::float8 * interval '1 millisecond'`,
  microseconds: ({ text, values }) => ({ text: microseconds(text), values }),
  // As a text: some libraries give a number as an object of their own.
  milliseconds: (instant, now) =>
    fragment`(extract(epoch FROM ${instant} - ${now})::float8 * 1000::float8)::text`,
  ids: {
    nonce: ({ scope, nonce }) => ({
      digest: fragment`${bound(digestNonce(scope, nonce))}::bytea`,
    }),
    key: (key) => ({ key: fragment`${bound(encodeKey(key))}::text` }),
    response: (token) => ({ token: fragment`${bound(encodeText(token))}::text` }),
  },
  named: () => ({}),
  // The guard is a CTE to join: evaluated once, before a row is locked. Conditions of the UPDATE itself are evaluated again after a wait for
  // that lock, when the statement is a transaction that has written.
  update: ({ of, set, where, guard }) =>
    guard === undefined
      ? fragment`UPDATE ${raw(of)} AS kept SET ${assigned(set)} WHERE ${where}`
      : fragment`WITH settings AS MATERIALIZED (SELECT WHERE ${guard})
UPDATE ${raw(of)} AS kept SET ${assigned(set)} FROM settings WHERE ${where}`,
};

/** With placeholders as PostgreSQL has them. The stores' statements have question marks for nothing else: no name of a table has one. */
export function numbered({ text: plain }: Sql): string {
  let number = 0;
  return plain.replaceAll("?", () => `$${(number += 1)}`);
}
