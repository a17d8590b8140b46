import { randomUUID } from "node:crypto";
import type { PartyStatus } from "@countersign/webhooks";
import type Database from "libsql";
import type { DeliveryService } from "../delivery/delivery-service.ts";
import { Sql } from "../sql.ts";
import { SandboxError } from "./sandbox-error.ts";

export type PartyKind = "buyer" | "seller";

/** In the spec's order. */
export const partyStatuses: readonly PartyStatus[] = [
  "PENDING",
  "ACTIVE",
  "INACTIVE",
  "REJECTED",
  "SUSPENDED",
];

/** A payment request as Get Payment Request shows it; the spec names these two states. */
export interface PaymentRequest {
  readonly payment_request_id: string;
  readonly status: "PENDING_REPAYMENT" | "CLOSED";
  /** `YYYY-MM-DD`. */
  readonly due_date: string;
}

export interface NewPaymentRequest {
  /** 1 to 256 characters without control characters. Default a random UUID. */
  readonly payment_request_id?: string | undefined;
  /** `YYYY-MM-DD`, a day of the calendar. */
  readonly due_date: string;
}

export interface Confirmation {
  readonly confirmation_id: number;
  /** RFC 3339, in UTC. */
  readonly received_at: string;
  /** As received; the spec does not show its fields. */
  readonly body: Readonly<Record<string, unknown>>;
}

export interface StatusChange {
  readonly status: PartyStatus;
  /** Absent when the buyer or seller was created, as PENDING, and has not changed since. */
  readonly old_status?: PartyStatus | undefined;
  readonly event_id?: string | undefined;
}

/** With the event that was sent, and `days_from_due_date` of a reminder. */
export interface NotifiedPaymentRequest extends PaymentRequest {
  readonly event_id: string;
  readonly days_from_due_date?: number | undefined;
}

export interface Slice {
  readonly limit: number;
  readonly offset: number;
}

export type ChangeKind = "buyers" | "sellers" | "payment-requests" | "payouts" | "endpoints";

export interface SimulationInit {
  readonly database: Database.Database;
  readonly deliveries: DeliveryService;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
  /** Called after each write; the transaction may still be open. */
  readonly changed: (kind: ChangeKind) => void;
}

const schema = `
  CREATE TABLE IF NOT EXISTS parties (
    kind   TEXT NOT NULL CHECK (kind IN ('buyer', 'seller')),
    id     TEXT NOT NULL,
    status TEXT NOT NULL,
    PRIMARY KEY (kind, id)
  ) STRICT;
  CREATE TABLE IF NOT EXISTS payment_requests (
    payment_request_id TEXT NOT NULL PRIMARY KEY,
    status             TEXT NOT NULL CHECK (status IN ('PENDING_REPAYMENT', 'CLOSED')),
    due_date           TEXT NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS confirmations (
    confirmation_id INTEGER PRIMARY KEY,
    received_at     TEXT NOT NULL,
    body            TEXT NOT NULL
  ) STRICT;
`;

/** Simulates by the state rules of the spec. A state and its event are one transaction. Every method throws a SandboxError. */
export class Simulation {
  readonly #init: SimulationInit;
  readonly #sql: Sql;

  /** Creates missing tables. */
  constructor(init: SimulationInit) {
    this.#init = init;
    init.database.exec(schema);
    this.#sql = new Sql(init.database);
  }

  status(kind: PartyKind, id: string): PartyStatus {
    const status = this.#statusOf(kind, id);
    if (status === undefined) throw new SandboxError("not-found", `no ${kind} of this id`);
    return status;
  }

  changeStatus(kind: PartyKind, id: string, status: PartyStatus): StatusChange {
    return this.#sql.atomically(() => {
      const known = this.#statusOf(kind, id);
      const oldStatus = known ?? "PENDING";
      if (known === status) throw new SandboxError("status-unchanged", `the ${kind} is ${status} already`);
      this.#sql.run(
        `INSERT INTO parties (kind, id, status) VALUES (:kind, :id, :status)
         ON CONFLICT (kind, id) DO UPDATE SET status = excluded.status`,
        { kind, id, status },
      );
      this.#init.changed(`${kind}s`);
      if (oldStatus === status) return { status };
      const eventId = this.#notify(`${kind}.status_changed`, {
        [`${kind}_id`]: id,
        old_status: oldStatus,
        new_status: status,
      });
      return { old_status: oldStatus, status, event_id: eventId };
    });
  }

  /** The newest first, and how many there are. */
  parties(kind: PartyKind, slice: Slice): Readonly<Record<string, unknown>> {
    const query = { columns: `id AS ${kind}_id, status`, from: "parties WHERE kind = :kind" };
    return this.#page(`${kind}s`, query, { kind, ...slice });
  }

  paymentRequests(slice: Slice): Readonly<Record<string, unknown>> {
    return this.#page("payment_requests", { columns: "*", from: "payment_requests" }, { ...slice });
  }

  paymentRequest(id: string): PaymentRequest {
    const statement = "SELECT * FROM payment_requests WHERE payment_request_id = :id";
    const request = this.#sql.find<PaymentRequest>(statement, { id });
    if (request === undefined) throw new SandboxError("not-found", "no payment request of this id");
    return request;
  }

  createPaymentRequest({ payment_request_id = randomUUID(), due_date }: NewPaymentRequest): PaymentRequest {
    const request: PaymentRequest = { payment_request_id, status: "PENDING_REPAYMENT", due_date };
    return this.#sql.atomically(() => {
      const { changes } = this.#sql.run(
        `INSERT INTO payment_requests (payment_request_id, status, due_date)
         VALUES (:payment_request_id, :status, :due_date) ON CONFLICT (payment_request_id) DO NOTHING`,
        { ...request },
      );
      if (changes === 0)
        throw new SandboxError("payment-request-exists", "there is a payment request of this id already");
      this.#init.changed("payment-requests");
      return request;
    });
  }

  repay(id: string): NotifiedPaymentRequest {
    return this.#sql.atomically(() => {
      const request = this.#pending(id);
      this.#sql.run("UPDATE payment_requests SET status = 'CLOSED' WHERE payment_request_id = :id", { id });
      this.#init.changed("payment-requests");
      const eventId = this.#notify("payment_request.repayment.repaid", { payment_request_id: id });
      return { ...request, status: "CLOSED", event_id: eventId };
    });
  }

  /** The payment request stays as it is. */
  remind(id: string): NotifiedPaymentRequest {
    return this.#sql.atomically(() => {
      const request = this.#pending(id);
      const days = daysFromDueDate(request.due_date, this.#init.clock());
      const eventId = this.#notify("payment_request.repayment.reminder", {
        payment_request_id: id,
        due_date: request.due_date,
        days_from_due_date: days,
      });
      return { ...request, days_from_due_date: days, event_id: eventId };
    });
  }

  /** A confirmation that is reported again is kept again. */
  confirm(body: Confirmation["body"]): Confirmation {
    const receivedAt = new Date(this.#init.clock()).toISOString();
    const { lastInsertRowid } = this.#sql.run(
      "INSERT INTO confirmations (received_at, body) VALUES (:receivedAt, :text)",
      { receivedAt, text: JSON.stringify(body) },
    );
    return { confirmation_id: Number(lastInsertRowid), received_at: receivedAt, body };
  }

  confirmations(): readonly Confirmation[] {
    const rows = this.#sql.rows<Omit<Confirmation, "body"> & { readonly body: string }>(
      "SELECT * FROM confirmations ORDER BY confirmation_id",
    );
    return rows.map((row): Confirmation => Object.assign(row, { body: JSON.parse(row.body) }));
  }

  #page(
    name: string,
    { columns, from }: { readonly columns: string; readonly from: string },
    values: Pick<Slice, keyof Slice> & Readonly<Record<string, unknown>>,
  ): Readonly<Record<string, unknown>> {
    const page = `SELECT ${columns} FROM ${from} ORDER BY rowid DESC LIMIT :limit OFFSET :offset`;
    const { total } = this.#sql.row<{ readonly total: number }>(
      `SELECT count(*) AS total FROM ${from}`,
      values,
    );
    return { [name]: this.#sql.rows(page, values), total };
  }

  #statusOf(kind: PartyKind, id: string): PartyStatus | undefined {
    const statement = "SELECT status FROM parties WHERE kind = :kind AND id = :id";
    return this.#sql.find<{ readonly status: PartyStatus }>(statement, { kind, id })?.status;
  }

  #pending(id: string): PaymentRequest {
    const request = this.paymentRequest(id);
    if (request.status === "PENDING_REPAYMENT") return request;
    throw new SandboxError("payment-request-closed", "the payment request is CLOSED already");
  }

  #notify(type: string, data: Readonly<Record<string, unknown>>): string {
    const eventId = randomUUID();
    this.#init.deliveries.notify([{ event_id: eventId, type, data }]);
    return eventId;
  }
}

const dayMs = 86_400_000;

/** Calendar days in UTC from the due date to the date of `now`: negative before the due date, 0 on it. */
function daysFromDueDate(dueDate: string, now: number): number {
  return Math.floor(now / dayMs) - Date.parse(`${dueDate}T00:00:00Z`) / dayMs;
}
