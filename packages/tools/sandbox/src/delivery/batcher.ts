import { randomUUID } from "node:crypto";
import { completeEvent, joinEnvelope, type ServiceEvent } from "./envelope.ts";
import type { ResolvedDeliveryOptions } from "./options.ts";
import type { QueueTables } from "./queue-tables.ts";
import { createNanosecondClock, formatTimestamp } from "./timestamp.ts";

/** Turns events into webhooks. Writes within the transaction that the caller has begun. */
export class Batcher {
  readonly #tables: QueueTables;
  readonly #options: ResolvedDeliveryOptions;
  readonly #clock: () => number;
  readonly #nanoseconds: () => bigint;
  #heldBack = false;

  constructor(tables: QueueTables, options: ResolvedDeliveryOptions, clock: () => number) {
    this.#tables = tables;
    this.#options = options;
    this.#clock = clock;
    this.#nanoseconds = createNanosecondClock(clock);
  }

  /** Takes events in. What fills a webhook, or need not wait, is formed at once. */
  write(events: readonly ServiceEvent[]): void {
    const notifiedMs = Math.floor(this.#clock());
    const complete = events.map((event) => completeEvent(event, this.#nanoseconds()));
    for (const event of complete) this.#tables.addEvent(event, JSON.stringify(event), notifiedMs);
    this.#form(this.#options.batchMs === 0 ? 1 : this.#options.maxEventsPerWebhook);
  }

  /** When the events that wait become a webhook; undefined when none waits. */
  dueMs(): number | undefined {
    const { oldestMs } = this.#tables.waiting();
    return oldestMs === undefined ? undefined : oldestMs + this.#options.batchMs;
  }

  /** Forms webhooks of all events that wait. */
  formAll(): void {
    this.#form(1);
  }

  #form(minEvents: number): void {
    const { maxEventsPerWebhook } = this.#options;
    for (let { count } = this.#tables.waiting(); count >= minEvents;) {
      const events = this.#tables.waitingEvents(maxEventsPerWebhook);
      this.#formOne(events);
      count -= events.length;
    }
  }

  #formOne(events: ReturnType<QueueTables["waitingEvents"]>): void {
    const { retryForMs, initialDelayMs } = this.#options;
    const webhookId = randomUUID();
    const timestamp = formatTimestamp(this.#nanoseconds());
    const nowMs = Math.floor(this.#clock());
    this.#tables.addWebhook({
      webhookId,
      body: joinEnvelope(
        webhookId,
        timestamp,
        events.map(({ json }) => json),
      ),
      events,
      createdMs: nowMs,
      expiresMs: nowMs + Math.ceil(retryForMs),
      dueMs: this.#holdsBack() ? nowMs + Math.ceil(initialDelayMs) : nowMs,
    });
  }

  // Never two in a row: what is held back is there to be overtaken.
  #holdsBack(): boolean {
    const { reorder, random } = this.#options;
    this.#heldBack = !this.#heldBack && random() < reorder;
    return this.#heldBack;
  }
}
