import type { Sql } from "../sql.ts";
import type { WebhookAnswer } from "./send-webhook.ts";
import type { TamperedWebhookPart } from "./webhook-request.ts";

export const deliveryStates = ["pending", "delivered", "failed"] as const;

/** `pending` is tried again later; `failed` was given up after the retry period. */
export type DeliveryState = (typeof deliveryStates)[number];

export type StopKind = "paused" | "dropped";

export interface Delivery {
  readonly id: number;
  readonly webhookId: string;
  readonly endpointId: string;
  readonly url: string;
  readonly eventIds: readonly string[];
  readonly eventTypes: readonly string[];
  readonly state: DeliveryState;
  /** Milliseconds since 1970, like every time here. */
  readonly createdAt: number;
  /** When it is sent next; undefined when nothing is left to send. */
  readonly nextAttemptAt?: number | undefined;
  /** By hand: `paused` until it is continued or sent again, `dropped` for good. */
  readonly stopped?: StopKind | undefined;
  readonly attempts: readonly DeliveryAttempt[];
}

export interface DeliveryAttempt extends WebhookAnswer {
  readonly at: number;
  /** The part that was spoilt on purpose; such an attempt changes nothing of its delivery. */
  readonly spoilt?: TamperedWebhookPart | undefined;
}

export interface DeliveryFilter {
  readonly state?: DeliveryState | undefined;
  readonly eventId?: string | undefined;
  /** The newest ones. Default 100. */
  readonly limit?: number | undefined;
  /** Only deliveries with a lower number. */
  readonly before?: number | undefined;
}

type DeliveryRow = Omit<Delivery, "eventIds" | "eventTypes" | "attempts">;

const columns = `d.id, d.webhook_id AS webhookId, d.endpoint_id AS endpointId, e.url, d.state, d.created_ms AS createdAt,
    d.due_ms AS nextAttemptAt, s.kind AS stopped
  FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
    LEFT JOIN webhook_stops s ON s.delivery_id = d.id`;

/** Lists oldest first. Throws a TypeError on a filter that cannot be used. */
export function listDeliveries(sql: Sql, filter: DeliveryFilter = {}): readonly Delivery[] {
  assertFilter(filter);
  const rows = sql.rows<DeliveryRow>(
    `SELECT * FROM (SELECT ${columns}
     WHERE (:before IS NULL OR d.id < :before) AND (:state IS NULL OR d.state = :state)
       AND (:eventId IS NULL OR d.webhook_id IN (SELECT webhook_id FROM webhook_events WHERE event_id = :eventId))
     ORDER BY d.id DESC LIMIT :limit) ORDER BY id`,
    { ...filter, limit: filter.limit ?? 100 },
  );
  return rows.map((row) => complete(sql, row));
}

/** The delivery must exist. */
export function oneDelivery(sql: Sql, id: number): Delivery {
  return complete(sql, sql.row<DeliveryRow>(`SELECT ${columns} WHERE d.id = :id`, { id }));
}

function complete(sql: Sql, row: DeliveryRow): Delivery {
  const events = sql.rows<{ readonly id: string; readonly type: string }>(
    "SELECT event_id AS id, type FROM webhook_events WHERE webhook_id = :webhookId ORDER BY number",
    { webhookId: row.webhookId },
  );
  const attempts = sql.rows<DeliveryAttempt>(
    `SELECT at_ms AS at, status, error, duration_ms AS durationMs, spoilt
     FROM webhook_attempts LEFT JOIN webhook_exchanges ON attempt = number
     WHERE delivery_id = :id ORDER BY number`,
    { id: row.id },
  );
  const eventIds = events.map(({ id }) => id);
  return { ...row, eventIds, eventTypes: events.map(({ type }) => type), attempts };
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
