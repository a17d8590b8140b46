import { randomUUID } from "node:crypto";
import type { DeliveryParts } from "./delivery-sender.ts";
import { completeEvent, createNanosecondClock, formatTimestamp, joinEnvelope } from "./envelope.ts";
import type { ServiceEvent } from "./envelope.ts";
import type { WaitingEvent } from "./queue-tables.ts";

/** Turns events into webhooks. Writes within the caller's transaction. */
export class Batcher {
  readonly #parts: DeliveryParts;
  readonly #nanoseconds: () => bigint;
  #heldBack = false;

  constructor(parts: DeliveryParts) {
    this.#parts = parts;
    this.#nanoseconds = createNanosecondClock(parts.clock);
  }

  /** Takes events in; forms a webhook at once when one is full or need not wait. */
  write(events: readonly ServiceEvent[]): void {
    const { tables, options, clock } = this.#parts;
    const notifiedMs = Math.floor(clock());
    const complete = events.map((event) => completeEvent(event, this.#nanoseconds()));
    for (const event of complete) tables.addEvent(event, JSON.stringify(event), notifiedMs);
    this.#form(options.batchMs === 0 ? 1 : options.maxEventsPerWebhook);
  }

  /** When the events that wait become a webhook; undefined when none waits. */
  dueMs(): number | undefined {
    const { oldestMs } = this.#parts.tables.waiting();
    return oldestMs === undefined ? undefined : oldestMs + this.#parts.options.batchMs;
  }

  formAll(): void {
    this.#form(1);
  }

  #form(minEvents: number): void {
    const { tables, options } = this.#parts;
    for (let { count } = tables.waiting(); count >= minEvents;) {
      const events = tables.waitingEvents(options.maxEventsPerWebhook);
      this.#formOne(events);
      count -= events.length;
    }
  }

  #formOne(events: readonly WaitingEvent[]): void {
    const { tables, options, clock } = this.#parts;
    const webhookId = randomUUID();
    const timestamp = formatTimestamp(this.#nanoseconds());
    const written = events.map(({ json }) => json);
    const nowMs = Math.floor(clock());
    tables.addWebhook({
      webhookId,
      body: joinEnvelope(webhookId, timestamp, written),
      events,
      createdMs: nowMs,
      expiresMs: nowMs + Math.ceil(options.retryForMs),
      dueMs: this.#holdsBack() ? nowMs + Math.ceil(options.initialDelayMs) : nowMs,
    });
  }

  // Never two in a row: what is held back is there to be overtaken.
  #holdsBack(): boolean {
    const { reorder, random } = this.#parts.options;
    this.#heldBack = !this.#heldBack && random() < reorder;
    return this.#heldBack;
  }
}
