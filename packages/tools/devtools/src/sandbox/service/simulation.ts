import { randomUUID } from "node:crypto";
import type { PartyStatus } from "countersign/webhooks";
import type { DeliveryService } from "../delivery/delivery-service.ts";
import { Documents, type DocumentStore } from "../documents.ts";
import { identifierOf, newPaymentRequestOf, statusOf, type NewPaymentRequest, type Slice } from "./input.ts";
import { SandboxError } from "./sandbox-error.ts";

export type PartyKind = "buyer" | "seller";

/** A payment request as Get Payment Request shows it; the spec names these two states. */
export interface PaymentRequest {
  readonly payment_request_id: string;
  readonly status: "PENDING_REPAYMENT" | "CLOSED";
  /** `YYYY-MM-DD`. */
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
export type Simulation = ReturnType<typeof createSimulation>;

export function createSimulation({ store, deliveries, clock, changed }: SimulationInit) {
  type Parties = Documents<{ readonly status: PartyStatus }>;
  const parties: Readonly<Record<PartyKind, Parties>> = {
    buyer: new Documents(store, "buyers"),
    seller: new Documents(store, "sellers"),
  };
  const requests = new Documents<PaymentRequest>(store, "payment requests");
  const confirmations = new Documents<Confirmation>(store, "confirmations");

  const notify = (type: string, data: Readonly<Record<string, unknown>>): string => {
    const eventId = randomUUID();
    deliveries.notify([{ event_id: eventId, type, data }]);
    return eventId;
  };
  const paymentRequest = (id: string): PaymentRequest => {
    const request = requests.all.get(identifierOf(id));
    if (request === undefined) throw new SandboxError("not-found", "no payment request of this id");
    return request;
  };
  const pending = (id: string): PaymentRequest => {
    const request = paymentRequest(id);
    if (request.status === "PENDING_REPAYMENT") return request;
    throw new SandboxError("payment-request-closed", "the payment request is CLOSED already");
  };
  const statusOfParty = (kind: PartyKind, id: string): PartyStatus => {
    const status = parties[kind].all.get(identifierOf(id))?.status;
    if (status === undefined) throw new SandboxError("not-found", `no ${kind} of this id`);
    return status;
  };
  const changeStatus = (kind: PartyKind, id: string, status: PartyStatus): StatusChange =>
    store.atomically(() => {
      const known = parties[kind].all.get(identifierOf(id))?.status;
      const oldStatus = known ?? "PENDING";
      if (known === status) throw new SandboxError("status-unchanged", `the ${kind} is ${status} already`);
      parties[kind].put(id, { status: statusOf({ status }) });
      changed(`${kind}s`);
      if (oldStatus === status) return { status };
      const eventId = notify(`${kind}.status_changed`, {
        [`${kind}_id`]: id,
        old_status: oldStatus,
        new_status: status,
      });
      return { old_status: oldStatus, status, event_id: eventId };
    });

  return {
    statusOfParty,
    changeStatus,
    paymentRequest,
    buyerStatus: (id: string): PartyStatus => statusOfParty("buyer", id),
    sellerStatus: (id: string): PartyStatus => statusOfParty("seller", id),
    /** An unknown buyer is created as PENDING first. Refuses the status that the buyer has. */
    changeBuyerStatus: (id: string, to: PartyStatus): StatusChange => changeStatus("buyer", id, to),
    changeSellerStatus: (id: string, to: PartyStatus): StatusChange => changeStatus("seller", id, to),
    /** The newest first, and how many there are. */
    parties(kind: PartyKind, slice: Slice): Readonly<Record<string, unknown>> {
      const all = Array.from(parties[kind].all, ([id, party]) => ({ [`${kind}_id`]: id, ...party }));
      return { [`${kind}s`]: newest(all, slice), total: all.length };
    },
    paymentRequests(slice: Slice): Readonly<Record<string, unknown>> {
      const all = [...requests.all.values()];
      return { payment_requests: newest(all, slice), total: all.length };
    },
    createPaymentRequest(given: NewPaymentRequest): PaymentRequest {
      const { payment_request_id = randomUUID(), due_date } = newPaymentRequestOf(given);
      if (requests.all.has(payment_request_id))
        throw new SandboxError("payment-request-exists", "there is a payment request of this id already");
      const request: PaymentRequest = { payment_request_id, status: "PENDING_REPAYMENT", due_date };
      requests.put(payment_request_id, request);
      changed("payment-requests");
      return request;
    },
    /** Repays in full. Refuses a payment request that is CLOSED. */
    repay: (id: string): NotifiedPaymentRequest =>
      store.atomically(() => {
        const request: PaymentRequest = { ...pending(id), status: "CLOSED" };
        requests.put(id, request);
        changed("payment-requests");
        return {
          ...request,
          event_id: notify("payment_request.repayment.repaid", { payment_request_id: id }),
        };
      }),
    /** The payment request stays as it is. Refuses one that is CLOSED. */
    remind(id: string): NotifiedPaymentRequest {
      const request = pending(id);
      const days = daysFromDueDate(request.due_date, clock());
      const eventId = notify("payment_request.repayment.reminder", {
        payment_request_id: id,
        due_date: request.due_date,
        days_from_due_date: days,
      });
      return { ...request, days_from_due_date: days, event_id: eventId };
    },
    /** A confirmation that is reported again is kept again. */
    confirm(body: Confirmation["body"]): Confirmation {
      const number = confirmations.all.size + 1;
      const received_at = new Date(clock()).toISOString();
      const confirmation = { confirmation_id: number, received_at, body };
      confirmations.put(String(number), confirmation);
      return confirmation;
    },
    /** Oldest first. */
    confirmations: (): readonly Confirmation[] => [...confirmations.all.values()],
  };
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
