import { randomUUID } from "node:crypto";
import type { DeliveryParts } from "./delivery-sender.ts";
import { completeEvent, createNanosecondClock, envelopeOf, formatTimestamp } from "./envelope.ts";
import type { ServiceEvent, WireEvent } from "./envelope.ts";
import type { WaitingEvent } from "./delivery-queue.ts";

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
    const { queue, options, clock } = this.#parts;
    const notifiedMs = Math.floor(clock());
    const complete = events.map((event) => completeEvent(event, this.#nanoseconds()));
    for (const event of complete) queue.addEvent(event, JSON.stringify(event), notifiedMs);
    this.#form(options.batchMs === 0 ? 1 : options.maxEventsPerWebhook);
  }

  /** When the events that wait become a webhook; undefined when none waits. */
  dueMs(): number | undefined {
    const [oldest] = this.#parts.queue.waiting();
    return oldest && oldest.notifiedMs + this.#parts.options.batchMs;
  }

  formAll(): void {
    this.#form(1);
  }

  #form(minEvents: number): void {
    const { queue, options } = this.#parts;
    for (let waiting = queue.waiting(); waiting.length >= minEvents; waiting = queue.waiting())
      this.#formOne(waiting.slice(0, options.maxEventsPerWebhook));
  }

  #formOne(events: readonly WaitingEvent[]): void {
    const { queue, options, clock } = this.#parts;
    const webhookId = randomUUID();
    const timestamp = formatTimestamp(this.#nanoseconds());
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what add() has written
    const written = events.map(({ json }) => JSON.parse(json) as WireEvent);
    const nowMs = Math.floor(clock());
    queue.addWebhook({
      webhookId,
      body: envelopeOf(webhookId, timestamp, written),
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
