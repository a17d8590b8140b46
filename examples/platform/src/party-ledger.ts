import type { Awaitable } from "@countersign/idempotency-guard";
import type {
  BuyerStatusChanged,
  PaymentRequestReminder,
  PaymentRequestRepaid,
  SellerStatusChanged,
  WebhookEvent,
  WebhookTimestamp,
} from "@countersign/webhooks";
import { z } from "zod";
import type { Completion } from "./completion.ts";
import type { PartyChangeStatements } from "./party-statements.ts";

/** A row as shown by GET /inspect/events. */
type InspectedEvent = Readonly<z.infer<typeof eventRow>>;

/** What the platform knows of the service's parties, as shown by GET /inspect/state: each object is keyed by id. */
export interface InspectedState {
  readonly buyers: Readonly<Record<string, string>>;
  readonly sellers: Readonly<Record<string, string>>;
  readonly payment_requests: Readonly<
    Record<string, { readonly status: string; readonly reminders: number }>
  >;
}

/**
 * The platform's own record of buyers, sellers and payment requests. What an event changes, that it was applied and, through
 * `completeEvent`, that it is done are one transaction. An event that is on record changes nothing when it comes again. In
 * whatever order events arrive, the rows end as they would in the order of the events' own times: an older status changes
 * nothing but is applied all the same, and CLOSED is final.
 */
export interface PartyLedger {
  changeBuyer(event: BuyerStatusChanged, completeEvent: Completion | undefined): Awaitable<void>;
  changeSeller(event: SellerStatusChanged, completeEvent: Completion | undefined): Awaitable<void>;
  closePaymentRequest(event: PaymentRequestRepaid, completeEvent: Completion | undefined): Awaitable<void>;
  countReminder(event: PaymentRequestReminder, completeEvent: Completion | undefined): Awaitable<void>;
  /** For events that change nothing here: that it was applied is all that is written. */
  record(event: WebhookEvent, completeEvent: Completion | undefined): Awaitable<void>;
  /** In the order in which they were first applied. */
  inspectEvents(): Awaitable<readonly InspectedEvent[]>;
  inspectState(): Awaitable<InspectedState>;
}

/** What an event changes. */
interface PartyChange {
  readonly statement: keyof PartyChangeStatements;
  readonly values: readonly string[];
}

/** An event on its way into the ledger. */
interface PartyApplication {
  readonly event: WebhookEvent;
  readonly change: PartyChange | undefined;
  readonly completeEvent: Completion | undefined;
}

/** What a database does for a party ledger. */
export interface PartyEngine extends Pick<PartyLedger, "inspectEvents" | "inspectState"> {
  /** Records the event, makes the change when the event is new, and completes the event: one transaction. */
  apply(application: PartyApplication): Awaitable<void>;
}

/** The ledger on any database: what each event changes. */
export function partyLedgerOn(engine: PartyEngine): PartyLedger {
  return {
    changeBuyer(event, completeEvent) {
      const { buyer_id: id, new_status: status } = event.data;
      const change: PartyChange = {
        statement: "buyer",
        values: [id, status, sortableTime(event.timestamp)],
      };
      return engine.apply({ event, change, completeEvent });
    },
    changeSeller(event, completeEvent) {
      const { seller_id: id, new_status: status } = event.data;
      const change: PartyChange = {
        statement: "seller",
        values: [id, status, sortableTime(event.timestamp)],
      };
      return engine.apply({ event, change, completeEvent });
    },
    closePaymentRequest(event, completeEvent) {
      const change: PartyChange = { statement: "close", values: [event.data.payment_request_id] };
      return engine.apply({ event, change, completeEvent });
    },
    countReminder(event, completeEvent) {
      const change: PartyChange = { statement: "remind", values: [event.data.payment_request_id] };
      return engine.apply({ event, change, completeEvent });
    },
    record: (event, completeEvent) => engine.apply({ event, change: undefined, completeEvent }),
    inspectEvents: () => engine.inspectEvents(),
    inspectState: () => engine.inspectState(),
  };
}

/** The time with all nine digits, so that its texts order as the times do. Years beyond 2262 fit no 64-bit nanoseconds. */
function sortableTime({ raw }: WebhookTimestamp): string {
  const [wholeSeconds = "", fraction = ""] = raw.slice(0, -1).split(".");
  return `${wholeSeconds}.${fraction.padEnd(9, "0")}Z`;
}

/** Whether an event is new, by the row that its statement gave. */
export function isFirst(row: unknown): boolean {
  return row !== undefined && appliedRow.parse(row).applied === 1;
}

/** What GET /inspect/state shows, from the rows of the three tables. */
export function stateOf(rows: {
  readonly buyers: readonly unknown[];
  readonly sellers: readonly unknown[];
  readonly requests: readonly unknown[];
}): InspectedState {
  return {
    buyers: statusById(rows.buyers),
    sellers: statusById(rows.sellers),
    payment_requests: Object.fromEntries(
      rows.requests.map((row) => {
        const { id, ...request } = requestRow.parse(row);
        return [id, request];
      }),
    ),
  };
}

function statusById(rows: readonly unknown[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    rows.map((row) => {
      const { id, status } = partyRow.parse(row);
      return [id, status];
    }),
  );
}

const appliedRow = z.object({ applied: z.number() });
export const eventRow = z.object({ event_id: z.string(), type: z.string(), applied: z.number() });
const partyRow = z.object({ id: z.string(), status: z.string() });
const requestRow = z.object({ id: z.string(), status: z.string(), reminders: z.number() });
