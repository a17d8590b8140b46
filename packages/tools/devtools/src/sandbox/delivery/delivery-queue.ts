import { randomUUID } from "node:crypto";
import { Documents, type DocumentStore } from "../documents.ts";
import { isFoundBy, type Searched } from "../search.ts";
import {
  deliveryStates,
  type Delivery,
  type DeliveryAttempt,
  type DeliveryFilter,
  type StoredDelivery,
} from "./delivery.ts";
import type { WireEvent } from "./envelope.ts";
import type { WebhookExchange } from "./send-webhook.ts";
import type { EndpointRegistration } from "./webhook-request.ts";

/** Without credentials. */
export interface RegisteredEndpoint {
  readonly id: string;
  readonly url: string;
}

export interface WaitingEvent {
  readonly number: number;
  readonly id: string;
  readonly type: string;
  readonly json: string;
  readonly notifiedMs: number;
}

interface StoredWebhook {
  readonly body: string;
  readonly events: readonly Pick<WaitingEvent, "id" | "type">[];
}

interface FormedWebhook extends Pick<StoredDelivery, "webhookId" | "createdMs" | "expiresMs" | "dueMs"> {
  readonly body: Buffer;
  readonly events: readonly WaitingEvent[];
}

/** The newest attempts of a delivery, whose exchanges are kept; outcomes are kept of all. */
export const shownAttempts = 50;

/**
 * Every write is part of the caller's transaction. Milliseconds are whole. A delivery with `dueMs` is to be sent; a request under way
 * leaves it, so one that died with its process is due again.
 */
export class DeliveryQueue {
  readonly #endpoints: Documents<EndpointRegistration>;
  readonly #waiting: Documents<WaitingEvent>;
  readonly #webhooks: Documents<StoredWebhook>;
  readonly #deliveries: Documents<StoredDelivery>;

  constructor(store: DocumentStore) {
    this.#endpoints = new Documents(store, "endpoints");
    this.#waiting = new Documents(store, "waiting events");
    this.#webhooks = new Documents(store, "webhooks");
    this.#deliveries = new Documents(store, "deliveries", ({ dueMs }) => dueMs);
  }

  addEndpoint({ allowHttp = false, ...registration }: EndpointRegistration): string {
    const id = randomUUID();
    this.#endpoints.put(id, { ...registration, allowHttp: allowHttp !== false });
    return id;
  }

  endpoints(): readonly RegisteredEndpoint[] {
    return Array.from(this.#endpoints.all, ([id, { url }]) => ({ id, url }));
  }

  endpoint(id: string): EndpointRegistration {
    return known(this.#endpoints.all.get(id));
  }

  credentials(): readonly EndpointRegistration[] {
    return [...this.#endpoints.all.values()];
  }

  addEvent({ event_id: id, type }: WireEvent, json: string, notifiedMs: number): void {
    const number = (this.waiting().at(-1)?.number ?? 0) + 1;
    this.#waiting.put(String(number), { number, id, type, json, notifiedMs });
  }

  /** Events without a webhook, oldest first. */
  waiting(): readonly WaitingEvent[] {
    const events = [...this.#waiting.all.values()];
    // One that was put back after a failure is the last one.
    events.sort((one, other) => one.number - other.number);
    return events;
  }

  addWebhook({ body, events, ...formed }: FormedWebhook): void {
    const { webhookId } = formed;
    this.#webhooks.put(webhookId, {
      body: body.toString("utf8"),
      events: events.map(({ id, type }) => ({ id, type })),
    });
    for (const { number } of events) this.#waiting.remove(String(number));
    for (const endpointId of this.#endpoints.all.keys()) {
      const id = this.#deliveries.all.size + 1;
      this.#deliveries.put(String(id), {
        ...formed,
        id,
        endpointId,
        state: "pending",
        rounds: 0,
        attempts: [],
      });
    }
  }

  body(webhookId: string): Buffer {
    return Buffer.from(known(this.#webhooks.all.get(webhookId)).body, "utf8");
  }

  delivery(id: number): StoredDelivery | undefined {
    return this.#deliveries.all.get(String(id));
  }

  deliveries(): Iterable<StoredDelivery> {
    return this.#deliveries.all.values();
  }

  /** The delivery must exist. */
  change(id: number, changed: Partial<StoredDelivery>): void {
    this.#deliveries.put(String(id), { ...known(this.delivery(id)), ...changed });
  }

  /** Those that wait longest come first. */
  *due(endpointId: string, nowMs: number): Generator<StoredDelivery> {
    for (const one of this.#deliveries.sorted) {
      if ((one.dueMs ?? 0) > nowMs) return;
      if (one.endpointId === endpointId) yield one;
    }
  }

  /** Undefined when nothing is due later. */
  nextDueMs(afterMs: number): number | undefined {
    return this.#deliveries.sorted[this.#deliveries.indexAfter(afterMs)]?.dueMs;
  }

  hasWork(): boolean {
    return this.#waiting.all.size > 0 || this.#deliveries.sorted.length > 0;
  }

  addAttempt(id: number, attempt: DeliveryAttempt, exchange: WebhookExchange): void {
    const { attempts } = known(this.delivery(id));
    const kept = attempts.map(({ exchange: earlier, ...each }, index) => {
      const isOld = each.spoilt === undefined && index <= attempts.length - shownAttempts;
      return isOld ? each : Object.assign(each, { exchange: earlier });
    });
    this.change(id, { attempts: [...kept, { ...attempt, exchange }] });
  }

  /** Oldest first. Throws a TypeError on a filter that cannot be used. */
  list(filter: DeliveryFilter = {}): readonly Delivery[] {
    assertFilter(filter);
    const { limit = 100 } = filter;
    return this.found(filter)
      .slice(-limit)
      .map((one) => this.shown(one));
  }

  /** All that a filter admits, whatever its limit. */
  found({ state, eventId, search = "", before = Infinity }: DeliveryFilter): readonly StoredDelivery[] {
    return [...this.deliveries()].filter(
      (one) =>
        one.id < before &&
        (state === undefined || one.state === state) &&
        (eventId === undefined || this.#eventsOf(one).some(({ id }) => id === eventId)) &&
        (search === "" || isFoundBy(search, this.#searched(one))),
    );
  }

  #searched({ id, state, stop, endpointId, webhookId, attempts }: StoredDelivery): Searched {
    const { body } = known(this.#webhooks.all.get(webhookId));
    return {
      texts: [`#${id}`, state, stop?.kind ?? "", this.endpoint(endpointId).url, body],
      answers: attempts.map(({ status, error }) => status ?? error),
    };
  }

  shown({ id, webhookId, endpointId, state, createdMs, dueMs, stop, attempts }: StoredDelivery): Delivery {
    const events = this.#eventsOf({ webhookId });
    return {
      id,
      webhookId,
      endpointId,
      url: this.endpoint(endpointId).url,
      state,
      createdAt: createdMs,
      nextAttemptAt: dueMs,
      stopped: stop?.kind,
      eventIds: events.map((event) => event.id),
      eventTypes: events.map(({ type }) => type),
      attempts: attempts.map(({ exchange: _exchange, ...attempt }) => attempt),
    };
  }

  /** An id is a delivery's own number, a webhook_id or an event_id. */
  deliveriesOf(id: string): readonly StoredDelivery[] {
    return [...this.deliveries()].filter(
      (one) =>
        String(one.id) === id || one.webhookId === id || this.#eventsOf(one).some((event) => event.id === id),
    );
  }

  #eventsOf({ webhookId }: Pick<StoredDelivery, "webhookId">): StoredWebhook["events"] {
    return known(this.#webhooks.all.get(webhookId)).events;
  }
}

function known<T>(document: T | undefined): T {
  if (document === undefined) throw new Error("the database lacks a document that another one names");
  return document;
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
