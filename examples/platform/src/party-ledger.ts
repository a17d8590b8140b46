import { withImmediateTransaction } from "@countersign/store-sqlite";
import type {
  BuyerStatusChanged,
  PaymentRequestReminder,
  PaymentRequestRepaid,
  SellerStatusChanged,
  WebhookEvent,
  WebhookTimestamp,
} from "@countersign/webhooks";
import { z } from "zod";
import type { PlatformDatabase } from "./database.ts";

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

/** Ends an event as part of the ledger's own transaction; when it throws, the transaction never happened. */
type CompleteEvent = (transaction: PlatformDatabase) => unknown;

/**
 * The platform's own record of buyers, sellers and payment requests. What an event changes, that it was applied and that it is
 * done are one transaction. In whatever order events arrive, the rows end as they would in the order of the events' own times:
 * an older status changes nothing but is applied all the same, and CLOSED is final.
 */
export interface PartyLedger {
  changeBuyer(event: BuyerStatusChanged, completeEvent: CompleteEvent): void;
  changeSeller(event: SellerStatusChanged, completeEvent: CompleteEvent): void;
  closePaymentRequest(event: PaymentRequestRepaid, completeEvent: CompleteEvent): void;
  countReminder(event: PaymentRequestReminder, completeEvent: CompleteEvent): void;
  /** For events that change nothing here: that it was applied is all that is written. */
  record(event: WebhookEvent, completeEvent: CompleteEvent): void;
  /** In the order in which they were first applied. */
  inspectEvents(): readonly InspectedEvent[];
  inspectState(): InspectedState;
}

export function createPartyLedger(database: PlatformDatabase): PartyLedger {
  const insertEvent = database.prepare(`
    INSERT INTO webhook_events (event_id, type, applied) VALUES (?, ?, 1)
    ON CONFLICT (event_id) DO UPDATE SET applied = applied + 1
    RETURNING applied`);
  const upsertBuyer = database.prepare(upsertStatus("buyers"));
  const upsertSeller = database.prepare(upsertStatus("sellers"));
  const close = database.prepare(`
    INSERT INTO payment_requests (id, status, reminders) VALUES (?, 'CLOSED', 0)
    ON CONFLICT (id) DO UPDATE SET status = 'CLOSED'`);
  const remind = database.prepare(`
    INSERT INTO payment_requests (id, status, reminders) VALUES (?, 'PENDING_REPAYMENT', 1)
    ON CONFLICT (id) DO UPDATE SET reminders = reminders + 1`);
  const selectEvents = database.prepare("SELECT event_id, type, applied FROM webhook_events ORDER BY rowid");
  const selectBuyers = database.prepare("SELECT id, status FROM buyers");
  const selectSellers = database.prepare("SELECT id, status FROM sellers");
  const selectRequests = database.prepare("SELECT id, status, reminders FROM payment_requests");

  function apply(
    event: WebhookEvent,
    completeEvent: CompleteEvent,
    change: (isFirst: boolean) => void,
  ): void {
    withImmediateTransaction(database, (transaction) => {
      const { applied } = appliedRow.parse(insertEvent.all(event.event_id, event.type)[0]);
      change(applied === 1);
      // Returned, so that a promise is refused: COMMIT would not wait for it.
      return completeEvent(transaction);
    });
  }

  return {
    changeBuyer(event, completeEvent) {
      const { buyer_id: id, new_status: status } = event.data;
      apply(event, completeEvent, () => void upsertBuyer.run(id, status, sortableTime(event.timestamp)));
    },
    changeSeller(event, completeEvent) {
      const { seller_id: id, new_status: status } = event.data;
      apply(event, completeEvent, () => void upsertSeller.run(id, status, sortableTime(event.timestamp)));
    },
    closePaymentRequest(event, completeEvent) {
      apply(event, completeEvent, () => void close.run(event.data.payment_request_id));
    },
    countReminder(event, completeEvent) {
      apply(event, completeEvent, (isFirst) => {
        // The one change that adds up: an event whose completion has been forgotten must not count again.
        if (isFirst) remind.run(event.data.payment_request_id);
      });
    },
    record: (event, completeEvent) => apply(event, completeEvent, () => {}),
    inspectEvents: () => selectEvents.all().map((row) => eventRow.parse(row)),
    inspectState: () => ({
      buyers: statusById(selectBuyers.all()),
      sellers: statusById(selectSellers.all()),
      payment_requests: Object.fromEntries(
        selectRequests.all().map((row) => {
          const { id, ...request } = requestRow.parse(row);
          return [id, request];
        }),
      ),
    }),
  };
}

function upsertStatus(table: "buyers" | "sellers"): string {
  return `
    INSERT INTO ${table} (id, status, changed_at) VALUES (?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET status = excluded.status, changed_at = excluded.changed_at
    WHERE excluded.changed_at >= ${table}.changed_at`;
}

/** The time with all nine digits, so that its texts order as the times do. Years beyond 2262 fit no 64-bit nanoseconds. */
function sortableTime({ raw }: WebhookTimestamp): string {
  const [wholeSeconds = "", fraction = ""] = raw.slice(0, -1).split(".");
  return `${wholeSeconds}.${fraction.padEnd(9, "0")}Z`;
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
const eventRow = z.object({ event_id: z.string(), type: z.string(), applied: z.number() });
const partyRow = z.object({ id: z.string(), status: z.string() });
const requestRow = z.object({ id: z.string(), status: z.string(), reminders: z.number() });
