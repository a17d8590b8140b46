import { randomUUID } from "node:crypto";
import type Database from "libsql";
import { numberOf, optionalNumberOf, rowOf, textOf } from "../sql.ts";
import type { WireEvent } from "./envelope.ts";
import type { WebhookAnswer, WebhookExchange } from "./send-webhook.ts";
import { deliveryStateOf, stopKindOf } from "./delivery.ts";
import type { DeliveryState, EndpointRegistration, RegisteredEndpoint, StopKind } from "./types.ts";
import type { TamperedWebhookPart } from "./webhook-request.ts";

/** A delivery whose time has come. */
export interface DueDelivery {
  readonly id: number;
  readonly endpointId: string;
  readonly webhookId: string;
  readonly state: DeliveryState;
  readonly expiresMs: number;
  /** How often it was sent before. */
  readonly rounds: number;
}

/** An event that is in no webhook yet. */
export interface WaitingEvent {
  readonly number: number;
  readonly json: string;
}

/** What becomes of a delivery after an attempt. */
export interface DeliveryProgress {
  readonly state: DeliveryState;
  readonly dueMs: number | undefined;
}

/** A webhook as it is formed: one delivery for each endpoint. */
export interface FormedWebhook {
  readonly webhookId: string;
  readonly body: Buffer;
  readonly events: readonly WaitingEvent[];
  readonly createdMs: number;
  readonly expiresMs: number;
  readonly dueMs: number;
}

/** What of the queue waits for the batcher. */
export interface WaitingEvents {
  readonly count: number;
  readonly oldestMs: number | undefined;
}

/** What is kept of an attempt beside its outcome. */
export interface RecordedExchange {
  readonly exchange: WebhookExchange;
  readonly spoilt?: TamperedWebhookPart | undefined;
}

// Of the newest attempts; outcomes are kept of all.
const keptExchanges = 10_000;

/** The queue as rows. Every write is part of a transaction that the caller has begun. Milliseconds are whole. */
export class QueueTables {
  readonly #sql: ReturnType<typeof prepare>;

  constructor(database: Database.Database) {
    this.#sql = prepare(database);
  }

  addEndpoint({ url, username, password, secret, allowHttp = false }: EndpointRegistration): string {
    const id = randomUUID();
    this.#sql.addEndpoint.run(id, url, username, password, secret, allowHttp === false ? 0 : 1);
    return id;
  }

  endpoints(): readonly RegisteredEndpoint[] {
    return this.#sql.endpoints.all().map((value) => {
      const row = rowOf(value);
      return { id: textOf(row, "id"), url: textOf(row, "url") };
    });
  }

  endpoint(id: string): Required<EndpointRegistration> {
    const row = rowOf(this.#sql.endpoint.get(id));
    return {
      url: textOf(row, "url"),
      username: textOf(row, "username"),
      password: textOf(row, "password"),
      secret: textOf(row, "secret"),
      allowHttp: numberOf(row, "allow_http") === 1,
    };
  }

  addEvent({ event_id, type }: WireEvent, json: string, notifiedMs: number): void {
    this.#sql.addEvent.run(event_id, type, json, notifiedMs);
  }

  waiting(): WaitingEvents {
    const row = rowOf(this.#sql.waiting.get());
    return { count: numberOf(row, "count"), oldestMs: optionalNumberOf(row, "oldest_ms") };
  }

  waitingEvents(limit: number): readonly WaitingEvent[] {
    return this.#sql.waitingEvents.all(limit).map((value) => {
      const row = rowOf(value);
      return { number: numberOf(row, "number"), json: textOf(row, "json") };
    });
  }

  addWebhook({ webhookId, body, events, createdMs, expiresMs, dueMs }: FormedWebhook): void {
    this.#sql.addWebhook.run(webhookId, body);
    for (const { number } of events) this.#sql.assignEvent.run(webhookId, number);
    this.#sql.addDeliveries.run(webhookId, createdMs, expiresMs, dueMs);
  }

  due(endpointId: string, nowMs: number, limit: number): readonly DueDelivery[] {
    return this.#sql.due.all(endpointId, nowMs, limit).map((value) => {
      const row = rowOf(value);
      return {
        id: numberOf(row, "id"),
        endpointId,
        webhookId: textOf(row, "webhook_id"),
        state: deliveryStateOf(row),
        expiresMs: numberOf(row, "expires_ms"),
        rounds: numberOf(row, "rounds"),
      };
    });
  }

  nextDueMs(afterMs: number): number | undefined {
    return optionalNumberOf(rowOf(this.#sql.nextDue.get(afterMs)), "due_ms");
  }

  body(webhookId: string): Buffer {
    const { body } = rowOf(this.#sql.body.get(webhookId));
    if (body instanceof Uint8Array) return Buffer.from(body);
    throw new Error("the database returned no bytes of a webhook");
  }

  addAttempt(
    deliveryId: number,
    atMs: number,
    { status, error, durationMs }: WebhookAnswer,
    { exchange, spoilt }: RecordedExchange,
  ): void {
    const { lastInsertRowid } = this.#sql.addAttempt.run(
      deliveryId,
      atMs,
      status ?? null,
      error ?? null,
      durationMs,
    );
    this.#sql.addExchange.run(lastInsertRowid, spoilt ?? null, JSON.stringify(exchange));
    this.#sql.forgetExchange.run(Number(lastInsertRowid) - keptExchanges);
  }

  /** What somebody has stopped while it was under way stays so, unless it has arrived. */
  progress(deliveryId: number, { state, dueMs }: DeliveryProgress): void {
    const stopped = this.stopOf(deliveryId);
    if (state === "delivered") this.#sql.endStop.run(deliveryId);
    else if (stopped === "paused") this.#sql.stop.run(deliveryId, "paused", dueMs ?? null);
    const isStopped = state !== "delivered" && stopped !== undefined;
    const then = stopped === "dropped" && isStopped ? "failed" : state;
    this.#sql.progress.run(then, isStopped ? null : (dueMs ?? null), deliveryId);
  }

  stopOf(deliveryId: number): StopKind | undefined {
    const row = this.#sql.stopOf.get(deliveryId);
    return row === undefined ? undefined : stopKindOf(textOf(rowOf(row), "kind"));
  }

  /** Takes the due time away, and keeps it for `continue`. */
  pause(deliveryId: number): void {
    const { due_ms: dueMs } = rowOf(this.#sql.dueOf.get(deliveryId));
    this.#sql.stop.run(deliveryId, "paused", dueMs);
    this.#sql.takeDue.run(deliveryId);
  }

  continue(deliveryId: number, nowMs: number): void {
    const dueMs = optionalNumberOf(rowOf(this.#sql.stopOf.get(deliveryId)), "due_ms");
    this.#sql.endStop.run(deliveryId);
    this.#sql.giveDue.run(Math.max(dueMs ?? nowMs, nowMs), deliveryId);
  }

  drop(deliveryId: number): void {
    this.#sql.stop.run(deliveryId, "dropped", null);
    this.#sql.takeDue.run(deliveryId);
    this.#sql.giveUp.run(deliveryId);
  }

  /** The deliveries that an id names: their own number, or a webhook_id or event_id. */
  deliveryIdsOf(id: string): readonly number[] {
    return this.#sql.deliveryIdsOf.all(id, id, id).map((row) => numberOf(rowOf(row), "id"));
  }

  makeDue(deliveryId: number, dueMs: number, expiresMs: number): void {
    this.#sql.endStop.run(deliveryId);
    this.#sql.makeDue.run(dueMs, expiresMs, deliveryId);
  }

  hasWork(): boolean {
    return numberOf(rowOf(this.#sql.hasWork.get()), "work") === 1;
  }
}

// oxlint-disable-next-line typescript/explicit-function-return-type -- the statements are their own description
function prepare(database: Database.Database) {
  return {
    addEndpoint: database.prepare(
      "INSERT INTO webhook_endpoints (id, url, username, password, secret, allow_http) VALUES (?, ?, ?, ?, ?, ?)",
    ),
    endpoints: database.prepare("SELECT id, url FROM webhook_endpoints ORDER BY number"),
    endpoint: database.prepare(
      "SELECT url, username, password, secret, allow_http FROM webhook_endpoints WHERE id = ?",
    ),
    addEvent: database.prepare(
      "INSERT INTO webhook_events (event_id, type, json, notified_ms) VALUES (?, ?, ?, ?)",
    ),
    waiting: database.prepare(
      "SELECT count(*) AS count, min(notified_ms) AS oldest_ms FROM webhook_events WHERE webhook_id IS NULL",
    ),
    waitingEvents: database.prepare(
      "SELECT number, json FROM webhook_events WHERE webhook_id IS NULL ORDER BY number LIMIT ?",
    ),
    addWebhook: database.prepare("INSERT INTO webhooks (webhook_id, body) VALUES (?, ?)"),
    assignEvent: database.prepare("UPDATE webhook_events SET webhook_id = ? WHERE number = ?"),
    addDeliveries: database.prepare(
      `INSERT INTO webhook_deliveries (webhook_id, endpoint_id, state, created_ms, expires_ms, due_ms)
       SELECT ?, id, 'pending', ?, ?, ? FROM webhook_endpoints ORDER BY number`,
    ),
    due: database.prepare(
      `SELECT id, webhook_id, state, expires_ms, rounds
       FROM webhook_deliveries WHERE endpoint_id = ? AND due_ms <= ? ORDER BY due_ms, id LIMIT ?`,
    ),
    nextDue: database.prepare("SELECT min(due_ms) AS due_ms FROM webhook_deliveries WHERE due_ms > ?"),
    body: database.prepare("SELECT body FROM webhooks WHERE webhook_id = ?"),
    addAttempt: database.prepare(
      "INSERT INTO webhook_attempts (delivery_id, at_ms, status, error, duration_ms) VALUES (?, ?, ?, ?, ?)",
    ),
    progress: database.prepare(
      "UPDATE webhook_deliveries SET state = ?, due_ms = ?, rounds = rounds + 1 WHERE id = ?",
    ),
    deliveryIdsOf: database.prepare(
      `SELECT id FROM webhook_deliveries WHERE CAST(id AS TEXT) = ? OR webhook_id = ?
         OR webhook_id IN (SELECT webhook_id FROM webhook_events WHERE event_id = ?) ORDER BY id`,
    ),
    makeDue: database.prepare(
      `UPDATE webhook_deliveries SET state = CASE state WHEN 'delivered' THEN state ELSE 'pending' END, rounds = 0,
         due_ms = ?, expires_ms = ? WHERE id = ?`,
    ),
    addExchange: database.prepare(
      "INSERT INTO webhook_exchanges (attempt, spoilt, exchange) VALUES (?, ?, ?)",
    ),
    forgetExchange: database.prepare("DELETE FROM webhook_exchanges WHERE attempt = ? AND spoilt IS NULL"),
    stop: database.prepare(
      `INSERT INTO webhook_stops (delivery_id, kind, due_ms) VALUES (?, ?, ?)
       ON CONFLICT (delivery_id) DO UPDATE SET kind = excluded.kind, due_ms = excluded.due_ms`,
    ),
    stopOf: database.prepare("SELECT kind, due_ms FROM webhook_stops WHERE delivery_id = ?"),
    endStop: database.prepare("DELETE FROM webhook_stops WHERE delivery_id = ?"),
    dueOf: database.prepare("SELECT due_ms FROM webhook_deliveries WHERE id = ?"),
    takeDue: database.prepare("UPDATE webhook_deliveries SET due_ms = NULL WHERE id = ?"),
    giveDue: database.prepare("UPDATE webhook_deliveries SET due_ms = ? WHERE id = ?"),
    giveUp: database.prepare(
      "UPDATE webhook_deliveries SET state = 'failed' WHERE id = ? AND state = 'pending'",
    ),
    hasWork: database.prepare(
      `SELECT EXISTS (SELECT 1 FROM webhook_deliveries WHERE due_ms IS NOT NULL)
         OR EXISTS (SELECT 1 FROM webhook_events WHERE webhook_id IS NULL) AS work`,
    ),
  };
}
