import { randomUUID } from "node:crypto";
import { numberOf, optionalNumberOf, textOf, type DatabaseRow, type Sql } from "../sql.ts";
import { deliveryStateOf, stopKindOf, type DeliveryState, type StopKind } from "./delivery.ts";
import type { WireEvent } from "./envelope.ts";
import type { WebhookAnswer, WebhookExchange } from "./send-webhook.ts";
import type { EndpointRegistration, TamperedWebhookPart } from "./webhook-request.ts";

/** An endpoint without its credentials. */
export interface RegisteredEndpoint {
  readonly id: string;
  readonly url: string;
}

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

/** An attempt, and what went over the wire in it. */
export interface RecordedAttempt {
  readonly deliveryId: number;
  readonly atMs: number;
  readonly answer: WebhookAnswer;
  readonly exchange: WebhookExchange;
  readonly spoilt?: TamperedWebhookPart | undefined;
}

// Of the newest attempts; outcomes are kept of all.
const keptExchanges = 10_000;

/** The queue as rows. Every write is part of a transaction that the caller has begun. Milliseconds are whole. */
export class QueueTables {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  addEndpoint({ allowHttp = false, ...registration }: EndpointRegistration): string {
    const id = randomUUID();
    this.#sql.run(
      `INSERT INTO webhook_endpoints (id, url, username, password, secret, allow_http)
       VALUES (:id, :url, :username, :password, :secret, :allowed)`,
      { ...registration, id, allowed: allowHttp === false ? 0 : 1 },
    );
    return id;
  }

  endpoints(): readonly RegisteredEndpoint[] {
    const rows = this.#sql.rows("SELECT id, url FROM webhook_endpoints ORDER BY number");
    return rows.map((row) => ({ id: textOf(row, "id"), url: textOf(row, "url") }));
  }

  endpoint(id: string): Required<EndpointRegistration> {
    return registrationOf(this.#sql.row("SELECT * FROM webhook_endpoints WHERE id = :id", { id }));
  }

  /** All of them, with their credentials. */
  registrations(): readonly Required<EndpointRegistration>[] {
    return this.#sql.rows("SELECT * FROM webhook_endpoints").map(registrationOf);
  }

  addEvent({ event_id, type }: WireEvent, json: string, notifiedMs: number): void {
    this.#sql.run(
      "INSERT INTO webhook_events (event_id, type, json, notified_ms) VALUES (:event_id, :type, :json, :notifiedMs)",
      { event_id, type, json, notifiedMs },
    );
  }

  waiting(): WaitingEvents {
    const row = this.#sql.row(
      "SELECT count(*) AS count, min(notified_ms) AS oldest_ms FROM webhook_events WHERE webhook_id IS NULL",
    );
    return { count: numberOf(row, "count"), oldestMs: optionalNumberOf(row, "oldest_ms") };
  }

  waitingEvents(limit: number): readonly WaitingEvent[] {
    const rows = this.#sql.rows(
      "SELECT number, json FROM webhook_events WHERE webhook_id IS NULL ORDER BY number LIMIT :limit",
      { limit },
    );
    return rows.map((row) => ({ number: numberOf(row, "number"), json: textOf(row, "json") }));
  }

  addWebhook({ body, events, ...formed }: FormedWebhook): void {
    const { webhookId } = formed;
    this.#sql.run("INSERT INTO webhooks (webhook_id, body) VALUES (:webhookId, :body)", { webhookId, body });
    for (const { number } of events)
      this.#sql.run("UPDATE webhook_events SET webhook_id = :webhookId WHERE number = :number", {
        webhookId,
        number,
      });
    this.#sql.run(
      `INSERT INTO webhook_deliveries (webhook_id, endpoint_id, state, created_ms, expires_ms, due_ms)
       SELECT :webhookId, id, 'pending', :createdMs, :expiresMs, :dueMs FROM webhook_endpoints ORDER BY number`,
      formed,
    );
  }

  due(endpointId: string, nowMs: number, limit: number): readonly DueDelivery[] {
    const rows = this.#sql.rows(
      `SELECT id, webhook_id, state, expires_ms, rounds FROM webhook_deliveries
       WHERE endpoint_id = :endpointId AND due_ms <= :nowMs ORDER BY due_ms, id LIMIT :limit`,
      { endpointId, nowMs, limit },
    );
    return rows.map((row) => ({
      id: numberOf(row, "id"),
      endpointId,
      webhookId: textOf(row, "webhook_id"),
      state: deliveryStateOf(row),
      expiresMs: numberOf(row, "expires_ms"),
      rounds: numberOf(row, "rounds"),
    }));
  }

  nextDueMs(afterMs: number): number | undefined {
    const statement = "SELECT min(due_ms) AS due_ms FROM webhook_deliveries WHERE due_ms > :afterMs";
    return optionalNumberOf(this.#sql.row(statement, { afterMs }), "due_ms");
  }

  body(webhookId: string): Buffer {
    const { body } = this.#sql.row("SELECT body FROM webhooks WHERE webhook_id = :webhookId", { webhookId });
    if (body instanceof Uint8Array) return Buffer.from(body);
    throw new Error("the database returned no bytes of a webhook");
  }

  addAttempt({ deliveryId, atMs, answer, exchange, spoilt }: RecordedAttempt): void {
    const { lastInsertRowid: number } = this.#sql.run(
      `INSERT INTO webhook_attempts (delivery_id, at_ms, status, error, duration_ms)
       VALUES (:deliveryId, :atMs, :status, :error, :durationMs)`,
      { deliveryId, atMs, ...answer },
    );
    this.#sql.run(
      "INSERT INTO webhook_exchanges (attempt, spoilt, exchange) VALUES (:number, :spoilt, :json)",
      { number, spoilt, json: JSON.stringify(exchange) },
    );
    this.#sql.run("DELETE FROM webhook_exchanges WHERE attempt = :old AND spoilt IS NULL", {
      old: Number(number) - keptExchanges,
    });
  }

  /** The exchanges of the newest attempts of a delivery, as JSON, newest first; null where it was forgotten. */
  exchanges(id: number, limit: number): readonly unknown[] {
    const rows = this.#sql.rows(
      `SELECT exchange FROM webhook_attempts LEFT JOIN webhook_exchanges ON attempt = number
       WHERE delivery_id = :id ORDER BY number DESC LIMIT :limit`,
      { id, limit },
    );
    return rows.map((row) => row["exchange"]);
  }

  /** What somebody has stopped while it was under way stays so, unless it has arrived. */
  progress(id: number, { state, dueMs }: DeliveryProgress): void {
    const stopped = this.stopOf(id);
    if (state === "delivered") this.#endStop(id);
    else if (stopped === "paused") this.#stop(id, "paused", dueMs);
    const isStopped = state !== "delivered" && stopped !== undefined;
    this.#sql.run(
      "UPDATE webhook_deliveries SET state = :newState, due_ms = :dueMs, rounds = rounds + 1 WHERE id = :id",
      {
        id,
        newState: stopped === "dropped" && isStopped ? "failed" : state,
        dueMs: isStopped ? undefined : dueMs,
      },
    );
  }

  stopOf(id: number): StopKind | undefined {
    return stopKindOf(
      this.#sql.find("SELECT kind FROM webhook_stops WHERE delivery_id = :id", { id })?.["kind"],
    );
  }

  /** Takes the due time away, and keeps it for `continue`. */
  pause(id: number): void {
    const row = this.#sql.row("SELECT due_ms FROM webhook_deliveries WHERE id = :id", { id });
    this.#stop(id, "paused", optionalNumberOf(row, "due_ms"));
    this.#setDue(id, undefined);
  }

  continue(id: number, nowMs: number): void {
    const row = this.#sql.row("SELECT due_ms FROM webhook_stops WHERE delivery_id = :id", { id });
    this.#endStop(id);
    this.#setDue(id, Math.max(optionalNumberOf(row, "due_ms") ?? nowMs, nowMs));
  }

  drop(id: number): void {
    this.#stop(id, "dropped", undefined);
    this.#setDue(id, undefined);
    this.#sql.run("UPDATE webhook_deliveries SET state = 'failed' WHERE id = :id AND state = 'pending'", {
      id,
    });
  }

  /** The deliveries that an id names: their own number, or a webhook_id or event_id. */
  deliveryIdsOf(id: string): readonly number[] {
    const rows = this.#sql.rows(
      `SELECT id FROM webhook_deliveries WHERE CAST(id AS TEXT) = :id OR webhook_id = :id
         OR webhook_id IN (SELECT webhook_id FROM webhook_events WHERE event_id = :id) ORDER BY id`,
      { id },
    );
    return rows.map((row) => numberOf(row, "id"));
  }

  makeDue(id: number, dueMs: number, expiresMs: number): void {
    this.#endStop(id);
    this.#sql.run(
      `UPDATE webhook_deliveries SET state = CASE state WHEN 'delivered' THEN state ELSE 'pending' END, rounds = 0,
         due_ms = :dueMs, expires_ms = :expiresMs WHERE id = :id`,
      { id, dueMs, expiresMs },
    );
  }

  hasWork(): boolean {
    const row = this.#sql.row(
      `SELECT EXISTS (SELECT 1 FROM webhook_deliveries WHERE due_ms IS NOT NULL)
         OR EXISTS (SELECT 1 FROM webhook_events WHERE webhook_id IS NULL) AS work`,
    );
    return numberOf(row, "work") === 1;
  }

  #stop(id: number, kind: StopKind, dueMs: number | undefined): void {
    this.#sql.run(
      `INSERT INTO webhook_stops (delivery_id, kind, due_ms) VALUES (:id, :kind, :dueMs)
       ON CONFLICT (delivery_id) DO UPDATE SET kind = excluded.kind, due_ms = excluded.due_ms`,
      { id, kind, dueMs },
    );
  }

  #endStop(id: number): void {
    this.#sql.run("DELETE FROM webhook_stops WHERE delivery_id = :id", { id });
  }

  #setDue(id: number, dueMs: number | undefined): void {
    this.#sql.run("UPDATE webhook_deliveries SET due_ms = :dueMs WHERE id = :id", { id, dueMs });
  }
}

function registrationOf(row: DatabaseRow): Required<EndpointRegistration> {
  return {
    url: textOf(row, "url"),
    username: textOf(row, "username"),
    password: textOf(row, "password"),
    secret: textOf(row, "secret"),
    allowHttp: numberOf(row, "allow_http") === 1,
  };
}
