import type Database from "libsql";
import { numberOf, rowOf, textOf, type DatabaseRow } from "../sql.ts";
import type { Listed, Slice } from "./parties.ts";

/** A payment request as Get Payment Request shows it; the spec names these two states. */
export interface PaymentRequest {
  readonly payment_request_id: string;
  readonly status: "PENDING_REPAYMENT" | "CLOSED";
  /** `YYYY-MM-DD`. */
  readonly due_date: string;
}

/** Every payment request that the service knows. */
export interface PaymentRequests {
  find(id: string): PaymentRequest | undefined;
  /** False when there is one of this id already. */
  insert(request: PaymentRequest): boolean;
  close(id: string): void;
  /** The newest first. */
  list(slice: Slice): Listed<PaymentRequest>;
}

const schema = `
  CREATE TABLE IF NOT EXISTS payment_requests (
    payment_request_id TEXT NOT NULL PRIMARY KEY,
    status             TEXT NOT NULL CHECK (status IN ('PENDING_REPAYMENT', 'CLOSED')),
    due_date           TEXT NOT NULL
  ) STRICT;
`;

/** Creates the table when it is missing. */
export function createPaymentRequests(database: Database.Database): PaymentRequests {
  database.exec(schema);
  const select = database.prepare(
    "SELECT payment_request_id, status, due_date FROM payment_requests WHERE payment_request_id = ?",
  );
  const insert = database.prepare(`
    INSERT INTO payment_requests (payment_request_id, status, due_date) VALUES (?, ?, ?)
    ON CONFLICT (payment_request_id) DO NOTHING`);
  const close = database.prepare(
    "UPDATE payment_requests SET status = 'CLOSED' WHERE payment_request_id = ?",
  );
  const newest = database.prepare(
    "SELECT payment_request_id, status, due_date FROM payment_requests ORDER BY rowid DESC LIMIT ? OFFSET ?",
  );
  const count = database.prepare("SELECT count(*) AS count FROM payment_requests");
  return {
    list({ limit, offset }) {
      const items = newest.all(limit, offset).map((row) => paymentRequestOf(rowOf(row)));
      return { items, total: numberOf(rowOf(count.get()), "count") };
    },
    find(id) {
      const row = select.get(id);
      return row === undefined ? undefined : paymentRequestOf(rowOf(row));
    },
    insert({ payment_request_id, status, due_date }) {
      return insert.run(payment_request_id, status, due_date).changes === 1;
    },
    close(id) {
      close.run(id);
    },
  };
}

function paymentRequestOf(row: DatabaseRow): PaymentRequest {
  return {
    payment_request_id: textOf(row, "payment_request_id"),
    // The table has no third status.
    status: textOf(row, "status") === "CLOSED" ? "CLOSED" : "PENDING_REPAYMENT",
    due_date: textOf(row, "due_date"),
  };
}
