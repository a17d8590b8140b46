import type Database from "libsql";
import { numberOf, rowOf, textOf, type DatabaseRow } from "../sql.ts";
import { confirmationOf } from "./input.ts";

/** A payout confirmation that a platform has sent. */
export interface Confirmation {
  readonly confirmation_id: number;
  /** RFC 3339, in UTC. */
  readonly received_at: string;
  /** As received; the spec does not show its fields. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** The payout confirmations received. One that is reported again is kept again. */
export interface Confirmations {
  add(body: Readonly<Record<string, unknown>>): Confirmation;
  /** Oldest first. */
  list(): readonly Confirmation[];
}

const schema = `
  CREATE TABLE IF NOT EXISTS confirmations (
    confirmation_id INTEGER PRIMARY KEY,
    received_at     TEXT NOT NULL,
    body            TEXT NOT NULL
  ) STRICT;
`;

/** Creates the table when it is missing. `clock` gives milliseconds since 1970. */
export function createConfirmations(database: Database.Database, clock: () => number): Confirmations {
  database.exec(schema);
  const insert = database.prepare("INSERT INTO confirmations (received_at, body) VALUES (?, ?)");
  const select = database.prepare(
    "SELECT confirmation_id, received_at, body FROM confirmations ORDER BY confirmation_id",
  );
  return {
    add(body) {
      const receivedAt = new Date(clock()).toISOString();
      const { lastInsertRowid } = insert.run(receivedAt, JSON.stringify(body));
      return { confirmation_id: Number(lastInsertRowid), received_at: receivedAt, body };
    },
    list() {
      return select.all().map((row) => readConfirmation(rowOf(row)));
    },
  };
}

function readConfirmation(row: DatabaseRow): Confirmation {
  return {
    confirmation_id: numberOf(row, "confirmation_id"),
    received_at: textOf(row, "received_at"),
    body: confirmationOf(JSON.parse(textOf(row, "body"))),
  };
}
