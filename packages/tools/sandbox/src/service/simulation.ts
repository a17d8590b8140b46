import { randomUUID } from "node:crypto";
import type { PartyStatus } from "@countersign/webhooks";
import type { DeliveryService } from "../delivery/delivery-service.ts";
import { Documents, type DocumentStore } from "../documents.ts";
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
  readonly store: DocumentStore;
  readonly deliveries: DeliveryService;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
  /** Called after each write; the transaction may still be open. */
  readonly changed: (kind: ChangeKind) => void;
}

/** Simulates by the state rules of the spec. A state and its event are one transaction. Every method throws a SandboxError. */
export class Simulation {
  readonly #init: SimulationInit;
  readonly #parties: Readonly<Record<PartyKind, Documents<{ readonly status: PartyStatus }>>>;
  readonly #requests: Documents<PaymentRequest>;
  readonly #confirmations: Documents<Confirmation>;

  constructor(init: SimulationInit) {
    const { store } = init;
    this.#init = init;
    this.#parties = { buyer: new Documents(store, "buyers"), seller: new Documents(store, "sellers") };
    this.#requests = new Documents(store, "payment requests");
    this.#confirmations = new Documents(store, "confirmations");
  }

  status(kind: PartyKind, id: string): PartyStatus {
    const status = this.#parties[kind].all.get(id)?.status;
    if (status === undefined) throw new SandboxError("not-found", `no ${kind} of this id`);
    return status;
  }

  changeStatus(kind: PartyKind, id: string, status: PartyStatus): StatusChange {
    return this.#init.store.atomically(() => {
      const known = this.#parties[kind].all.get(id)?.status;
      const oldStatus = known ?? "PENDING";
      if (known === status) throw new SandboxError("status-unchanged", `the ${kind} is ${status} already`);
      this.#parties[kind].put(id, { status });
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
    const parties = Array.from(this.#parties[kind].all, ([id, party]) => ({ [`${kind}_id`]: id, ...party }));
    return { [`${kind}s`]: newest(parties, slice), total: parties.length };
  }

  paymentRequests(slice: Slice): Readonly<Record<string, unknown>> {
    const requests = [...this.#requests.all.values()];
    return { payment_requests: newest(requests, slice), total: requests.length };
  }

  paymentRequest(id: string): PaymentRequest {
    const request = this.#requests.all.get(id);
    if (request === undefined) throw new SandboxError("not-found", "no payment request of this id");
    return request;
  }

  createPaymentRequest({ payment_request_id = randomUUID(), due_date }: NewPaymentRequest): PaymentRequest {
    if (this.#requests.all.has(payment_request_id))
      throw new SandboxError("payment-request-exists", "there is a payment request of this id already");
    const request: PaymentRequest = { payment_request_id, status: "PENDING_REPAYMENT", due_date };
    this.#requests.put(payment_request_id, request);
    this.#init.changed("payment-requests");
    return request;
  }

  repay(id: string): NotifiedPaymentRequest {
    return this.#init.store.atomically(() => {
      const request: PaymentRequest = { ...this.#pending(id), status: "CLOSED" };
      this.#requests.put(id, request);
      this.#init.changed("payment-requests");
      const eventId = this.#notify("payment_request.repayment.repaid", { payment_request_id: id });
      return { ...request, event_id: eventId };
    });
  }

  /** The payment request stays as it is. */
  remind(id: string): NotifiedPaymentRequest {
    const request = this.#pending(id);
    const days = daysFromDueDate(request.due_date, this.#init.clock());
    const eventId = this.#notify("payment_request.repayment.reminder", {
      payment_request_id: id,
      due_date: request.due_date,
      days_from_due_date: days,
    });
    return { ...request, days_from_due_date: days, event_id: eventId };
  }

  /** A confirmation that is reported again is kept again. */
  confirm(body: Confirmation["body"]): Confirmation {
    const number = this.#confirmations.all.size + 1;
    const received_at = new Date(this.#init.clock()).toISOString();
    const confirmation = { confirmation_id: number, received_at, body };
    this.#confirmations.put(String(number), confirmation);
    return confirmation;
  }

  confirmations(): readonly Confirmation[] {
    return [...this.#confirmations.all.values()];
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

function newest<Item>(items: readonly Item[], { limit, offset }: Slice): readonly Item[] {
  const all = [...items];
  all.reverse();
  return all.slice(offset, offset + limit);
}

const dayMs = 86_400_000;

/** Calendar days in UTC from the due date to the date of `now`: negative before the due date, 0 on it. */
function daysFromDueDate(dueDate: string, now: number): number {
  return Math.floor(now / dayMs) - Date.parse(`${dueDate}T00:00:00Z`) / dayMs;
}
