import type { PartyStatus } from "@countersign/webhooks";
import type Database from "libsql";

/** A buyer or a seller. */
export type PartyKind = "buyer" | "seller";

/** The status of every buyer and seller that the service knows. */
export interface Parties {
  status(kind: PartyKind, id: string): PartyStatus | undefined;
  setStatus(kind: PartyKind, id: string, status: PartyStatus): void;
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
  return {
    status(kind, id) {
      const row = select.get(kind, id) as { readonly status: PartyStatus } | undefined;
      return row?.status;
    },
    setStatus(kind, id, status) {
      upsert.run(kind, id, status);
    },
  };
}
