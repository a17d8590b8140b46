import { randomUUID } from "node:crypto";
import type { PartyStatus } from "@countersign/webhooks";
import type Database from "libsql";
import { atomically } from "../delivery/transaction.ts";
import type { DeliveryService } from "../delivery/delivery-service.ts";
import { daysFromDueDate } from "./calendar.ts";
import type { ChangeKind } from "./looking-routes.ts";
import type { NewPaymentRequest } from "./input.ts";
import {
  createParties,
  type Listed,
  type Parties,
  type Party,
  type PartyKind,
  type Slice,
} from "./parties.ts";
import { createPaymentRequests, type PaymentRequest, type PaymentRequests } from "./payment-requests.ts";
import { SandboxError } from "./sandbox-error.ts";

/** What a change of a status has led to. */
export interface StatusChange {
  readonly status: PartyStatus;
  /** Absent when the buyer or seller was created, as PENDING, and has not changed since. */
  readonly old_status?: PartyStatus | undefined;
  /** The event that tells of it. */
  readonly event_id?: string | undefined;
}

/** A payment request and the event that was sent about it. */
export interface NotifiedPaymentRequest extends PaymentRequest {
  readonly event_id: string;
}

/** A reminder that was sent. */
export interface Reminder extends NotifiedPaymentRequest {
  readonly days_from_due_date: number;
}

/** What a simulation works on. */
export interface SimulationInit {
  readonly database: Database.Database;
  readonly deliveries: Pick<DeliveryService, "notify">;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
  /** Hears of what was written; the transaction may still be open. */
  readonly changed?: ((kind: ChangeKind) => void) | undefined;
}

/**
 * Buyers, sellers and payment requests with the state rules of the spec. A state and the event that tells of it are written in
 * one transaction. Every method throws a SandboxError for what the state does not allow.
 */
export class Simulation {
  readonly #init: SimulationInit;
  readonly #parties: Parties;
  readonly #paymentRequests: PaymentRequests;

  constructor(init: SimulationInit) {
    this.#init = init;
    this.#parties = createParties(init.database);
    this.#paymentRequests = createPaymentRequests(init.database);
  }

  status(kind: PartyKind, id: string): PartyStatus {
    const status = this.#parties.status(kind, id);
    if (status === undefined) throw new SandboxError("not-found", `no ${kind} of this id`);
    return status;
  }

  /** An unknown buyer or seller is created as PENDING first. A change to the status that there is already is refused. */
  changeStatus(kind: PartyKind, id: string, status: PartyStatus): StatusChange {
    return atomically(this.#init.database, () => {
      const known = this.#parties.status(kind, id);
      const oldStatus = known ?? "PENDING";
      if (known === status) throw new SandboxError("status-unchanged", `the ${kind} is ${status} already`);
      this.#parties.setStatus(kind, id, status);
      this.#init.changed?.(`${kind}s`);
      if (oldStatus === status) return { status };
      const eventId = this.#notify(`${kind}.status_changed`, {
        [`${kind}_id`]: id,
        old_status: oldStatus,
        new_status: status,
      });
      return { old_status: oldStatus, status, event_id: eventId };
    });
  }

  parties(kind: PartyKind, slice: Slice): Listed<Party> {
    return this.#parties.list(kind, slice);
  }

  paymentRequests(slice: Slice): Listed<PaymentRequest> {
    return this.#paymentRequests.list(slice);
  }

  paymentRequest(id: string): PaymentRequest {
    const request = this.#paymentRequests.find(id);
    if (request === undefined) throw new SandboxError("not-found", "no payment request of this id");
    return request;
  }

  createPaymentRequest({ payment_request_id = randomUUID(), due_date }: NewPaymentRequest): PaymentRequest {
    const request: PaymentRequest = { payment_request_id, status: "PENDING_REPAYMENT", due_date };
    return atomically(this.#init.database, () => {
      if (!this.#paymentRequests.insert(request)) {
        throw new SandboxError("payment-request-exists", "there is a payment request of this id already");
      }
      this.#init.changed?.("payment-requests");
      return request;
    });
  }

  /** The buyer repays in full. */
  repay(id: string): NotifiedPaymentRequest {
    return atomically(this.#init.database, () => {
      const request = this.#pending(id);
      this.#paymentRequests.close(id);
      this.#init.changed?.("payment-requests");
      const eventId = this.#notify("payment_request.repayment.repaid", { payment_request_id: id });
      return { ...request, status: "CLOSED", event_id: eventId };
    });
  }

  /** Reminds of the repayment; the payment request stays as it is. */
  remind(id: string): Reminder {
    return atomically(this.#init.database, () => {
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
