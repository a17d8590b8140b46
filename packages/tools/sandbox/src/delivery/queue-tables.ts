import { randomUUID } from "node:crypto";
import type { Sql } from "../sql.ts";
import type { DeliveryAttempt, DeliveryState, StopKind } from "./delivery.ts";
import type { WireEvent } from "./envelope.ts";
import type { WebhookExchange } from "./send-webhook.ts";
import type { EndpointRegistration } from "./webhook-request.ts";

/** Without credentials. */
export interface RegisteredEndpoint {
  readonly id: string;
  readonly url: string;
}

export interface QueuedDelivery {
  readonly id: number;
  readonly endpointId: string;
  readonly webhookId: string;
  readonly state: DeliveryState;
  readonly expiresMs: number;
  readonly rounds: number;
}

export interface WaitingEvent {
  readonly number: number;
  readonly json: string;
}

interface FormedWebhook {
  readonly webhookId: string;
  readonly body: Buffer;
  readonly events: readonly WaitingEvent[];
  readonly createdMs: number;
  readonly expiresMs: number;
  readonly dueMs: number;
}

// Of the newest attempts; outcomes are kept of all.
const keptExchanges = 10_000;

const queuedColumns =
  "id, endpoint_id AS endpointId, webhook_id AS webhookId, state, expires_ms AS expiresMs, rounds";

/** Every write is part of the caller's transaction. Milliseconds are whole. */
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
    return this.#sql.rows("SELECT id, url FROM webhook_endpoints ORDER BY number");
  }

  endpoint(id: string): EndpointRegistration {
    const { allowed, ...registration } = this.#sql.row<EndpointRegistration & { readonly allowed: number }>(
      "SELECT url, username, password, secret, allow_http AS allowed FROM webhook_endpoints WHERE id = :id",
      { id },
    );
    return { ...registration, allowHttp: allowed === 1 };
  }

  credentials(): readonly Pick<EndpointRegistration, "username" | "password" | "secret">[] {
    return this.#sql.rows("SELECT username, password, secret FROM webhook_endpoints");
  }

  addEvent({ event_id, type }: WireEvent, json: string, notifiedMs: number): void {
    this.#sql.run(
      "INSERT INTO webhook_events (event_id, type, json, notified_ms) VALUES (:event_id, :type, :json, :notifiedMs)",
      { event_id, type, json, notifiedMs },
    );
  }

  /** Counts events without a webhook; `oldestMs` is when the first came. */
  waiting(): { readonly count: number; readonly oldestMs?: number } {
    return this.#sql.row(
      "SELECT count(*) AS count, min(notified_ms) AS oldestMs FROM webhook_events WHERE webhook_id IS NULL",
    );
  }

  waitingEvents(limit: number): readonly WaitingEvent[] {
    return this.#sql.rows(
      "SELECT number, json FROM webhook_events WHERE webhook_id IS NULL ORDER BY number LIMIT :limit",
      { limit },
    );
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

  delivery(id: number): QueuedDelivery | undefined {
    return this.#sql.find(`SELECT ${queuedColumns} FROM webhook_deliveries WHERE id = :id`, { id });
  }

  due(endpointId: string, nowMs: number, limit: number): readonly QueuedDelivery[] {
    return this.#sql.rows(
      `SELECT ${queuedColumns} FROM webhook_deliveries
       WHERE endpoint_id = :endpointId AND due_ms <= :nowMs ORDER BY due_ms, id LIMIT :limit`,
      { endpointId, nowMs, limit },
    );
  }

  nextDueMs(afterMs: number): number | undefined {
    const statement = "SELECT min(due_ms) AS dueMs FROM webhook_deliveries WHERE due_ms > :afterMs";
    return this.#sql.row<{ readonly dueMs?: number }>(statement, { afterMs }).dueMs;
  }

  body(webhookId: string): Buffer {
    const statement = "SELECT body FROM webhooks WHERE webhook_id = :webhookId";
    return Buffer.from(this.#sql.row<{ readonly body: Uint8Array }>(statement, { webhookId }).body);
  }

  addAttempt(id: number, attempt: DeliveryAttempt, exchange: WebhookExchange): void {
    const { lastInsertRowid: number } = this.#sql.run(
      `INSERT INTO webhook_attempts (delivery_id, at_ms, status, error, duration_ms)
       VALUES (:id, :at, :status, :error, :durationMs)`,
      { id, ...attempt },
    );
    this.#sql.run(
      "INSERT INTO webhook_exchanges (attempt, spoilt, exchange) VALUES (:number, :spoilt, :json)",
      { number, spoilt: attempt.spoilt, json: JSON.stringify(exchange) },
    );
    this.#sql.run("DELETE FROM webhook_exchanges WHERE attempt = :old AND spoilt IS NULL", {
      old: Number(number) - keptExchanges,
    });
  }

  /** Of the newest attempts, oldest first; empty where it was forgotten. */
  exchanges(id: number, limit: number): readonly Partial<WebhookExchange>[] {
    const rows = this.#sql.rows<{ readonly exchange?: string }>(
      `SELECT exchange FROM (
         SELECT number, exchange FROM webhook_attempts LEFT JOIN webhook_exchanges ON attempt = number
         WHERE delivery_id = :id ORDER BY number DESC LIMIT :limit) ORDER BY number`,
      { id, limit },
    );
    return rows.map(({ exchange = "{}" }): Partial<WebhookExchange> => JSON.parse(exchange));
  }

  /** What was stopped while it was under way stays so, unless it has arrived. */
  progress(id: number, state: DeliveryState, dueMs?: number): void {
    const stopped = this.stopOf(id);
    const isStopped = state !== "delivered" && stopped !== undefined;
    if (state === "delivered") this.#endStop(id);
    else if (stopped === "paused") this.#stop(id, "paused", dueMs);
    this.#sql.run(
      "UPDATE webhook_deliveries SET state = :newState, due_ms = :dueMs, rounds = rounds + 1 WHERE id = :id",
      {
        id,
        newState: isStopped && stopped === "dropped" ? "failed" : state,
        dueMs: isStopped ? undefined : dueMs,
      },
    );
  }

  stopOf(id: number): StopKind | undefined {
    const statement = "SELECT kind FROM webhook_stops WHERE delivery_id = :id";
    return this.#sql.find<{ readonly kind: StopKind }>(statement, { id })?.kind;
  }

  /** Keeps the due time for `continue`. */
  pause(id: number): void {
    const statement = "SELECT due_ms AS dueMs FROM webhook_deliveries WHERE id = :id";
    this.#stop(id, "paused", this.#dueMs(statement, id));
    this.#setDue(id, undefined);
  }

  continue(id: number, nowMs: number): void {
    const dueMs = this.#dueMs("SELECT due_ms AS dueMs FROM webhook_stops WHERE delivery_id = :id", id);
    this.#endStop(id);
    this.#setDue(id, Math.max(dueMs ?? nowMs, nowMs));
  }

  drop(id: number): void {
    this.#stop(id, "dropped", undefined);
    this.#setDue(id, undefined);
    this.#sql.run("UPDATE webhook_deliveries SET state = 'failed' WHERE id = :id AND state = 'pending'", {
      id,
    });
  }

  /** An id is a delivery's own number, a webhook_id or an event_id. */
  deliveryIdsOf(id: string): readonly number[] {
    const rows = this.#sql.rows<{ readonly id: number }>(
      `SELECT id FROM webhook_deliveries WHERE CAST(id AS TEXT) = :id OR webhook_id = :id
         OR webhook_id IN (SELECT webhook_id FROM webhook_events WHERE event_id = :id) ORDER BY id`,
      { id },
    );
    return rows.map((row) => row.id);
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
    const { work } = this.#sql.row<{ readonly work: number }>(
      `SELECT EXISTS (SELECT 1 FROM webhook_deliveries WHERE due_ms IS NOT NULL)
         OR EXISTS (SELECT 1 FROM webhook_events WHERE webhook_id IS NULL) AS work`,
    );
    return work === 1;
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

  #dueMs(statement: string, id: number): number | undefined {
    return this.#sql.row<{ readonly dueMs?: number }>(statement, { id }).dueMs;
  }

  #setDue(id: number, dueMs: number | undefined): void {
    this.#sql.run("UPDATE webhook_deliveries SET due_ms = :dueMs WHERE id = :id", { id, dueMs });
  }
}
