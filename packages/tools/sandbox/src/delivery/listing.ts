import type Database from "libsql";
import { numberOf, optionalNumberOf, rowOf, textOf, type DatabaseRow } from "../sql.ts";
import { isSendErrorCode } from "../send-error.ts";
import { deliveryStateOf, deliveryStates, stopKindOf } from "./delivery.ts";
import type { Delivery, DeliveryAttempt, DeliveryFilter } from "./types.ts";
import { tamperedWebhookParts } from "./webhook-request.ts";

/** Reads deliveries; see {@link createListing}. */
export interface DeliveryListing {
  readonly list: (filter?: DeliveryFilter) => readonly Delivery[];
  /** The delivery with this number, which there is. */
  readonly one: (id: number) => Delivery;
}

/** Reads deliveries with their events and attempts, oldest first. */
export function createListing(database: Database.Database): DeliveryListing {
  const columns = `d.id, d.webhook_id, d.endpoint_id, e.url, d.state, d.created_ms, d.due_ms, s.kind
     FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
       LEFT JOIN webhook_stops s ON s.delivery_id = d.id`;
  const single = database.prepare(`SELECT ${columns} WHERE d.id = ?`);
  const deliveries = database.prepare(
    `SELECT * FROM (SELECT ${columns}
     WHERE (? IS NULL OR d.id < ?) AND (? IS NULL OR d.state = ?)
       AND (? IS NULL OR d.webhook_id IN (SELECT webhook_id FROM webhook_events WHERE event_id = ?))
     ORDER BY d.id DESC LIMIT ?) ORDER BY id`,
  );
  const events = database.prepare(
    "SELECT event_id, type FROM webhook_events WHERE webhook_id = ? ORDER BY number",
  );
  const attempts = database.prepare(
    `SELECT at_ms, status, error, duration_ms, spoilt FROM webhook_attempts LEFT JOIN webhook_exchanges ON attempt = number
     WHERE delivery_id = ? ORDER BY number`,
  );

  const complete = (row: DatabaseRow): Delivery => {
    const webhookId = textOf(row, "webhook_id");
    const eventRows = events.all(webhookId).map(rowOf);
    return {
      id: numberOf(row, "id"),
      webhookId,
      endpointId: textOf(row, "endpoint_id"),
      url: textOf(row, "url"),
      eventIds: eventRows.map((event) => textOf(event, "event_id")),
      eventTypes: eventRows.map((event) => textOf(event, "type")),
      state: deliveryStateOf(row),
      createdAt: numberOf(row, "created_ms"),
      nextAttemptAt: optionalNumberOf(row, "due_ms"),
      stopped: stopKindOf(row["kind"]),
      attempts: attempts.all(numberOf(row, "id")).map((attempt) => attemptOf(rowOf(attempt))),
    };
  };

  return {
    list(filter = {}) {
      assertFilter(filter);
      const { state = null, eventId = null, limit = 100, before = null } = filter;
      const rows = deliveries.all(before, before, state, state, eventId, eventId, limit);
      return rows.map((row) => complete(rowOf(row)));
    },
    one: (id) => complete(rowOf(single.get(id))),
  };
}

function attemptOf(row: DatabaseRow): DeliveryAttempt {
  const { error } = row;
  const spoilt = tamperedWebhookParts.find((part) => part === row["spoilt"]);
  return {
    at: numberOf(row, "at_ms"),
    status: optionalNumberOf(row, "status"),
    error: isSendErrorCode(error) ? error : undefined,
    durationMs: numberOf(row, "duration_ms"),
    ...(spoilt === undefined ? {} : { spoilt }),
  };
}

function assertFilter({ state, limit, before }: DeliveryFilter): void {
  if (state !== undefined && !deliveryStates.includes(state)) {
    throw new TypeError(`list: state must be one of ${deliveryStates.join(", ")}`);
  }
  if (limit !== undefined && !(Number.isSafeInteger(limit) && limit >= 1)) {
    throw new TypeError(`list: limit must be an integer of at least 1, got ${limit}`);
  }
  if (before !== undefined && !Number.isSafeInteger(before)) {
    throw new TypeError(`list: before must be the number of a delivery, got ${before}`);
  }
}
