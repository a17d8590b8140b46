import type { PartyStatus } from "@countersign/webhooks";
import type Database from "libsql";
import { numberOf, rowOf, textOf } from "../sql.ts";

/** A buyer or a seller. */
export type PartyKind = "buyer" | "seller";

/** All statuses of the spec, in its order. */
export const partyStatuses: readonly PartyStatus[] = [
  "PENDING",
  "ACTIVE",
  "INACTIVE",
  "REJECTED",
  "SUSPENDED",
];

/** The status of every buyer and seller that the service knows. */
export interface Parties {
  status(kind: PartyKind, id: string): PartyStatus | undefined;
  setStatus(kind: PartyKind, id: string, status: PartyStatus): void;
  /** The newest first. */
  list(kind: PartyKind, slice: Slice): Listed<Party>;
}

/** A buyer or seller in a list. */
export interface Party {
  readonly id: string;
  readonly status: PartyStatus;
}

/** Which part of a list is asked for. */
export interface Slice {
  readonly limit: number;
  readonly offset: number;
}

/** A part of a list, and how long the whole is. */
export interface Listed<T> {
  readonly items: readonly T[];
  readonly total: number;
}

const schema = `
  CREATE TABLE IF NOT EXISTS parties (
    kind   TEXT NOT NULL CHECK (kind IN ('buyer', 'seller')),
    id     TEXT NOT NULL,
    status TEXT NOT NULL,
    PRIMARY KEY (kind, id)
  ) STRICT;
`;

/** Creates the table when it is missing. */
export function createParties(database: Database.Database): Parties {
  database.exec(schema);
  const select = database.prepare("SELECT status FROM parties WHERE kind = ? AND id = ?");
  const upsert = database.prepare(`
    INSERT INTO parties (kind, id, status) VALUES (?, ?, ?)
    ON CONFLICT (kind, id) DO UPDATE SET status = excluded.status`);
  const newest = database.prepare(
    "SELECT id, status FROM parties WHERE kind = ? ORDER BY rowid DESC LIMIT ? OFFSET ?",
  );
  const count = database.prepare("SELECT count(*) AS count FROM parties WHERE kind = ?");
  return {
    list(kind, { limit, offset }) {
      const rows = newest.all(kind, limit, offset).map(rowOf);
      const items = rows.map((row) => ({ id: textOf(row, "id"), status: statusOf(textOf(row, "status")) }));
      return { items, total: numberOf(rowOf(count.get(kind)), "count") };
    },
    status(kind, id) {
      const row = select.get(kind, id);
      return row === undefined ? undefined : statusOf(textOf(rowOf(row), "status"));
    },
    setStatus(kind, id, status) {
      upsert.run(kind, id, status);
    },
  };
}

function statusOf(text: string): PartyStatus {
  const status = partyStatuses.find((known) => known === text);
  if (status === undefined) throw new Error("the database returned an unknown status");
  return status;
}
