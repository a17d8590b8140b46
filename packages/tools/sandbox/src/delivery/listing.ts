import { numberOf, optionalNumberOf, textOf, type DatabaseRow, type Sql } from "../sql.ts";
import { isSendErrorCode } from "../send-error.ts";
import { deliveryStateOf, deliveryStates, stopKindOf } from "./delivery.ts";
import type { Delivery, DeliveryAttempt, DeliveryState } from "./delivery.ts";
import { tamperedWebhookParts } from "./webhook-request.ts";

/** Which deliveries are listed. */
export interface DeliveryFilter {
  readonly state?: DeliveryState | undefined;
  /** Deliveries whose webhook holds this event. */
  readonly eventId?: string | undefined;
  /** The newest so many. Default 100. */
  readonly limit?: number | undefined;
  /** Deliveries older than the one with this number. */
  readonly before?: number | undefined;
}

const columns = `d.id, d.webhook_id, d.endpoint_id, e.url, d.state, d.created_ms, d.due_ms, s.kind
  FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
    LEFT JOIN webhook_stops s ON s.delivery_id = d.id`;

/** The deliveries that a filter lets through, oldest first. Throws a TypeError on a filter that cannot be used. */
export function listDeliveries(sql: Sql, filter: DeliveryFilter = {}): readonly Delivery[] {
  assertFilter(filter);
  const rows = sql.rows(
    `SELECT * FROM (SELECT ${columns}
     WHERE (:before IS NULL OR d.id < :before) AND (:state IS NULL OR d.state = :state)
       AND (:eventId IS NULL OR d.webhook_id IN (SELECT webhook_id FROM webhook_events WHERE event_id = :eventId))
     ORDER BY d.id DESC LIMIT :limit) ORDER BY id`,
    { ...filter, limit: filter.limit ?? 100 },
  );
  return rows.map((row) => complete(sql, row));
}

/** The delivery with this number, which there is. */
export function oneDelivery(sql: Sql, id: number): Delivery {
  return complete(sql, sql.row(`SELECT ${columns} WHERE d.id = :id`, { id }));
}

function complete(sql: Sql, row: DatabaseRow): Delivery {
  const [id, webhookId] = [numberOf(row, "id"), textOf(row, "webhook_id")];
  const events = sql.rows(
    "SELECT event_id, type FROM webhook_events WHERE webhook_id = :webhookId ORDER BY number",
    { webhookId },
  );
  const attempts = sql.rows(
    `SELECT at_ms, status, error, duration_ms, spoilt FROM webhook_attempts LEFT JOIN webhook_exchanges ON attempt = number
     WHERE delivery_id = :id ORDER BY number`,
    { id },
  );
  return {
    id,
    webhookId,
    endpointId: textOf(row, "endpoint_id"),
    url: textOf(row, "url"),
    eventIds: events.map((event) => textOf(event, "event_id")),
    eventTypes: events.map((event) => textOf(event, "type")),
    state: deliveryStateOf(row),
    createdAt: numberOf(row, "created_ms"),
    nextAttemptAt: optionalNumberOf(row, "due_ms"),
    stopped: stopKindOf(row["kind"]),
    attempts: attempts.map(attemptOf),
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
