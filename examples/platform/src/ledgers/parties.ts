import type { Awaitable } from "@countersign/idempotency";
import { answerOf } from "@countersign/idempotency/internal";
import type { WebhookEvent, WebhookEventMap } from "countersign/webhooks";
import { z } from "zod";
import type { LedgerDatabase, SqlDialect, Statement } from "./database.ts";

/** What the platform knows of the service's parties, as shown by GET /inspect/state: each object is keyed by id. */
interface InspectedState {
  readonly buyers: Readonly<Record<string, string>>;
  readonly sellers: Readonly<Record<string, string>>;
  readonly payment_requests: Readonly<
    Record<string, { readonly status: string; readonly reminders: number }>
  >;
}

/**
 * The platform's own record of buyers, sellers and payment requests. What an event changes and that it was applied are one
 * transaction, that of the endpoint where there is a `tx`. An event that is on record changes nothing when it comes again. In
 * whatever order events arrive, the rows end as they would in the order of the events' own times: an older status changes
 * nothing but is applied all the same, and CLOSED is final.
 */
export interface PartyLedger {
  changeBuyer(event: WebhookEventMap["buyer.status_changed"], tx?: object): Awaitable<void>;
  changeSeller(event: WebhookEventMap["seller.status_changed"], tx?: object): Awaitable<void>;
  closePaymentRequest(
    event: WebhookEventMap["payment_request.repayment.repaid"],
    tx?: object,
  ): Awaitable<void>;
  countReminder(event: WebhookEventMap["payment_request.repayment.reminder"], tx?: object): Awaitable<void>;
  /** For events that change nothing here: that it was applied is all that is written. */
  record(event: WebhookEvent, tx?: object): Awaitable<void>;
  /** As shown by GET /inspect/events, in the order in which they were first applied. */
  inspectEvents(): Promise<readonly z.infer<typeof eventRow>[]>;
  inspectState(): Promise<InspectedState>;
}

export function partyLedgerOn(database: LedgerDatabase): PartyLedger {
  const statements = partyStatements(database.dialect);
  /** Records the event and makes the change when the event is new. */
  function apply(event: WebhookEvent, endpointTx: object | undefined, change?: Statement) {
    const record = endpointTx === undefined ? statements.insertEventUnlessKnown : statements.countEvent;
    return database.transaction(function* (tx) {
      const [row] = yield* answerOf(database.query([record, event.event_id, event.type], tx));
      const isNew = appliedRow.optional().parse(row)?.applied === 1;
      if (isNew && change !== undefined) yield* answerOf(database.query(change, tx));
    }, endpointTx);
  }
  return {
    changeBuyer: (event, tx) =>
      apply(event, tx, [statements.buyer, event.data.buyer_id, ...newStatus(event)]),
    changeSeller: (event, tx) =>
      apply(event, tx, [statements.seller, event.data.seller_id, ...newStatus(event)]),
    closePaymentRequest: (event, tx) => apply(event, tx, [statements.close, event.data.payment_request_id]),
    countReminder: (event, tx) => apply(event, tx, [statements.remind, event.data.payment_request_id]),
    record: (event, tx) => apply(event, tx),
    async inspectEvents() {
      return eventRow.array().parse(await database.query([statements.selectEvents]));
    },
    async inspectState() {
      const [buyers, sellers, requests] = await Promise.all([
        database.query([statements.selectBuyers]),
        database.query([statements.selectSellers]),
        database.query([statements.selectRequests]),
      ]);
      return {
        buyers: Object.fromEntries(partyRow.array().parse(buyers)),
        sellers: Object.fromEntries(partyRow.array().parse(sellers)),
        payment_requests: Object.fromEntries(requestRow.array().parse(requests)),
      };
    },
  };
}

/** Status and time. The time has all nine digits, so that its texts order as the times do. Years beyond 2262 fit no 64-bit nanoseconds. */
function newStatus({
  data,
  timestamp,
}: WebhookEventMap["buyer.status_changed"] | WebhookEventMap["seller.status_changed"]): [string, string] {
  const [wholeSeconds = "", fraction = ""] = timestamp.raw.slice(0, -1).split(".");
  return [data.new_status, `${wholeSeconds}.${fraction.padEnd(9, "0")}Z`];
}

const appliedRow = z.object({ applied: z.number() });
const eventRow = z.object({ event_id: z.string(), type: z.string(), applied: z.number() });
// Shown by id.
const partyRow = z
  .object({ id: z.string(), status: z.string() })
  .transform(({ id, status }) => [id, status] as const);
const requestRow = z
  .object({ id: z.string(), status: z.string(), reminders: z.number() })
  .transform(({ id, ...request }) => [id, request] as const);

/** The statements, each with the names of its values in their order. */
export function partyStatements({ schema }: SqlDialect) {
  const insertEvent = `INSERT INTO ${schema}webhook_events (event_id, type, applied) VALUES (?, ?, 1)`;
  const requests = `${schema}payment_requests`;
  return {
    /** eventId, type. Gives how often the event was applied, this time included. */
    countEvent: `
      ${insertEvent} ON CONFLICT (event_id) DO UPDATE SET applied = webhook_events.applied + 1
      RETURNING applied`,
    /** eventId, type. Gives a row when the event is new, and none otherwise. */
    insertEventUnlessKnown: `${insertEvent} ON CONFLICT (event_id) DO NOTHING RETURNING applied`,
    /** id, status, time. An older status changes nothing. */
    buyer: upsertStatus(schema, "buyers"),
    /** The same of a seller. */
    seller: upsertStatus(schema, "sellers"),
    /** id. CLOSED is final. */
    close: `
      INSERT INTO ${requests} (id, status, reminders) VALUES (?, 'CLOSED', 0)
      ON CONFLICT (id) DO UPDATE SET status = 'CLOSED'`,
    /** id. The one change that adds up. */
    remind: `
      INSERT INTO ${requests} (id, status, reminders) VALUES (?, 'PENDING_REPAYMENT', 1)
      ON CONFLICT (id) DO UPDATE SET reminders = payment_requests.reminders + 1`,
    selectEvents: `SELECT event_id, type, applied FROM ${schema}webhook_events ORDER BY rowid`,
    selectBuyers: `SELECT id, status FROM ${schema}buyers`,
    selectSellers: `SELECT id, status FROM ${schema}sellers`,
    selectRequests: `SELECT id, status, reminders FROM ${requests}`,
  };
}

function upsertStatus(schema: string, table: "buyers" | "sellers"): string {
  return `
    INSERT INTO ${schema}${table} (id, status, changed_at) VALUES (?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET status = excluded.status, changed_at = excluded.changed_at
    WHERE excluded.changed_at >= ${table}.changed_at`;
}
