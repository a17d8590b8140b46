import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import { readThrown } from "../../loopback/index.ts";
import type { SandboxOptions } from "../service/options.ts";
import type { DocumentStore } from "../documents.ts";
import type { Delivery, DeliveryFilter, StoredDelivery } from "./delivery.ts";
import { createDeliveryControl, type DeliveryControl } from "./delivery-control.ts";
import { DeliveryQueue, type RegisteredEndpoint, type WaitingEvent } from "./delivery-queue.ts";
import { sendDue, type DeliveryParts } from "./delivery-sender.ts";
import {
  completeEvent,
  createNanosecondClock,
  envelopeOf,
  formatTimestamp,
  type ServiceEvent,
  type WireEvent,
} from "./envelope.ts";
import { resolveDeliveryOptions, type DeliveryOptions } from "./options.ts";
import { endpointTarget, type EndpointRegistration } from "./webhook-request.ts";

/** Calls back once after a delay, unless the returned function is called before. */
export type StartTimer = (callback: () => void, delayMs: number) => () => void;

export interface DeliveryServiceInit extends Pick<
  SandboxOptions,
  "clock" | "speed" | "ca" | "forwardedFor" | "onAttempt"
> {
  readonly store: DocumentStore;
  readonly options?: DeliveryOptions | undefined;
  /** Further texts that `control.mask` takes out: the API key. */
  readonly secrets?: readonly string[] | undefined;
  /** Called with the numbers of changed deliveries; none when deliveries were formed. */
  readonly onChange?: ((ids: readonly number[]) => void) | undefined;
  /** Waits for the next due time. Default setTimeout. */
  readonly startTimer?: StartTimer | undefined;
}

const maxTimerMs = 2_147_483_647;
const pauseAfterErrorMs = 1000;

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error?: Error) => void;
}

/**
 * Delivers every event to every endpoint, at least once or until the retry period is over. All state is in the database: the next process
 * sends what was not finished. One service at a time works on a database.
 */
export class DeliveryService {
  readonly control: DeliveryControl;
  readonly #parts: DeliveryParts;
  readonly #nanoseconds: () => bigint;
  readonly #startTimer: StartTimer;
  readonly #onAttempt: DeliveryServiceInit["onAttempt"];
  readonly #onChange: NonNullable<DeliveryServiceInit["onChange"]>;
  readonly #underWay = new Map<number, Promise<void>>();
  readonly #waiters: Waiter[] = [];
  #running: AbortController | undefined;
  #cancelTimer: () => void = () => {};
  #heldBack = false;

  /** Sends nothing before `start`. Throws an OptionError. */
  constructor(init: DeliveryServiceInit) {
    const {
      store,
      clock = Date.now,
      speed = 1,
      ca,
      forwardedFor,
      startTimer = systemTimer,
      secrets = [],
    } = init;
    this.#onAttempt = init.onAttempt;
    this.#onChange = init.onChange ?? (() => {});
    this.#startTimer = startTimer;
    const options = resolveDeliveryOptions(init.options ?? {}, speed);
    this.#parts = { store, queue: new DeliveryQueue(store), options, clock, ca, forwardedFor };
    this.#nanoseconds = createNanosecondClock(clock);
    const changed = (id: number): void => this.#changed([id]);
    this.control = createDeliveryControl({ ...this.#parts, secrets, changed });
  }

  /** Throws a TypeError that says what is wrong, and shows no credential. */
  addEndpoint(registration: EndpointRegistration): RegisteredEndpoint {
    endpointTarget(registration);
    return { id: this.#parts.queue.addEndpoint(registration), url: registration.url };
  }

  endpoints(): readonly RegisteredEndpoint[] {
    return this.#parts.queue.endpoints();
  }

  /** Writes events in the open transaction, or its own; they are sent after its commit. Throws a TypeError on a wrong event. */
  notify(events: readonly ServiceEvent[]): void {
    const { store, queue, options, clock } = this.#parts;
    store.atomically(() => {
      const notifiedMs = Math.floor(clock());
      const complete = events.map((event) => completeEvent(event, this.#nanoseconds()));
      for (const event of complete) queue.addEvent(event, JSON.stringify(event), notifiedMs);
      // One that is full or need not wait is formed at once.
      this.#form(options.batchMs === 0 ? 1 : options.maxEventsPerWebhook);
    });
    // By a timer, because the transaction of the caller may not have committed yet.
    this.#changed([]);
  }

  /** Oldest first. */
  list(filter?: DeliveryFilter): readonly Delivery[] {
    return this.#parts.queue.list(filter);
  }

  /** Sends the same bytes again, by a delivery number, webhook_id or event_id: once if delivered, else for a new retry period. */
  resend(id: string): readonly Delivery[] {
    const { store, queue, options, clock } = this.#parts;
    const dueMs = Math.floor(clock());
    const expiresMs = dueMs + Math.ceil(options.retryForMs);
    const before = queue.deliveriesOf(id);
    store.atomically(() => {
      for (const one of before) {
        const state = one.state === "delivered" ? one.state : "pending";
        queue.change(one.id, { state, rounds: 0, dueMs, expiresMs, stop: undefined });
      }
    });
    this.#changed(before.map((one) => one.id));
    return queue.deliveriesOf(id).map((one) => queue.shown(one));
  }

  start(): void {
    if (this.#running !== undefined) return;
    this.#running = new AbortController();
    // Each request under way listens until it ends: as many as all endpoints' concurrency.
    setMaxListeners(0, this.#running.signal);
    this.#wakeAfter(0);
  }

  /** Waits `stopWaitMs` at most; what was cut off is pending and goes out after the next start. */
  async stop(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    this.#cancelTimer();
    const ended = Promise.all(this.#underWay.values());
    const cutOff = setTimeout(() => running?.abort(), this.#parts.options.stopWaitMs);
    await ended;
    clearTimeout(cutOff);
    this.#settleWaiters(new Error("the service stopped with webhooks left to send"));
  }

  /** Resolves when nothing is left to send; rejects when the service stops before. */
  idle(): Promise<void> {
    const idle = new Promise<void>((resolve, reject) => this.#waiters.push({ resolve, reject }));
    this.#settleWaiters();
    return idle;
  }

  #changed(ids: readonly number[]): void {
    if (this.#running !== undefined) this.#wakeAfter(0);
    this.#onChange(ids);
  }

  #wakeAfter(delayMs: number): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#startTimer(() => this.#wake(), Math.min(delayMs, maxTimerMs));
  }

  #wake(): void {
    const running = this.#running;
    if (running === undefined) return;
    try {
      const nowMs = this.#parts.clock();
      this.#formWebhooks(nowMs);
      for (const { id } of this.#parts.queue.endpoints()) this.#fill(id, nowMs, running.signal);
      this.#wakeForNext(nowMs);
      this.#settleWaiters();
    } catch (error) {
      this.#pauseAfter(error);
    }
  }

  /** When the events that wait become a webhook; undefined when none waits. */
  #batchDueMs(): number | undefined {
    const [oldest] = this.#parts.queue.waiting();
    return oldest && oldest.notifiedMs + this.#parts.options.batchMs;
  }

  #formWebhooks(nowMs: number): void {
    const dueMs = this.#batchDueMs();
    if (dueMs === undefined || dueMs > nowMs) return;
    this.#parts.store.atomically(() => this.#form(1));
    this.#onChange([]);
  }

  /** Turns events into webhooks, in the open transaction. */
  #form(minEvents: number): void {
    const { queue, options } = this.#parts;
    for (let waiting = queue.waiting(); waiting.length >= minEvents; waiting = queue.waiting())
      this.#formOne(waiting.slice(0, options.maxEventsPerWebhook));
  }

  #formOne(events: readonly WaitingEvent[]): void {
    const { queue, options, clock } = this.#parts;
    const webhookId = randomUUID();
    const timestamp = formatTimestamp(this.#nanoseconds());
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what notify() has written
    const written = events.map(({ json }) => JSON.parse(json) as WireEvent);
    const nowMs = Math.floor(clock());
    // Never two in a row: what is held back is there to be overtaken.
    this.#heldBack = !this.#heldBack && options.random() < options.reorder;
    queue.addWebhook({
      webhookId,
      body: envelopeOf(webhookId, timestamp, written),
      events,
      createdMs: nowMs,
      expiresMs: nowMs + Math.ceil(options.retryForMs),
      dueMs: this.#heldBack ? nowMs + Math.ceil(options.initialDelayMs) : nowMs,
    });
  }

  #fill(endpointId: string, nowMs: number, signal: AbortSignal): void {
    const { queue, options } = this.#parts;
    const underWay = [...this.#underWay.keys()].filter((id) => queue.delivery(id)?.endpointId === endpointId);
    let free = options.concurrency - underWay.length;
    for (const due of queue.due(endpointId, nowMs)) {
      if (free <= 0) return;
      if (this.#underWay.has(due.id)) continue;
      this.#underWay.set(due.id, this.#send(due, signal));
      free -= 1;
    }
  }

  async #send(due: StoredDelivery, signal: AbortSignal): Promise<void> {
    try {
      await sendDue(this.#parts, due, signal);
    } catch (error) {
      this.#underWay.delete(due.id);
      this.#pauseAfter(error);
      return;
    }
    this.#underWay.delete(due.id);
    this.#onChange([due.id]);
    if (!signal.aborted) this.#tell(due.id);
    this.#wake();
  }

  // Subscribers must not change the delivery.
  #tell(deliveryId: number): void {
    const { queue } = this.#parts;
    const stored = queue.delivery(deliveryId);
    if (this.#onAttempt === undefined || stored === undefined) return;
    try {
      this.#onAttempt(queue.shown(stored));
    } catch (error) {
      process.emitWarning(`onAttempt threw: ${readThrown(error).message}`, "CountersignWarning");
    }
  }

  // What is due already waits for a request to end, which wakes by itself.
  #wakeForNext(nowMs: number): void {
    const times = [this.#parts.queue.nextDueMs(nowMs), this.#batchDueMs()].filter(
      (time) => time !== undefined,
    );
    this.#cancelTimer();
    if (times.length > 0) this.#wakeAfter(Math.max(0, Math.ceil(Math.min(...times) - nowMs)));
  }

  // A locked or full database must neither end the process nor keep it busy.
  #pauseAfter(error: unknown): void {
    process.emitWarning(`webhook deliveries pause: ${readThrown(error).message}`, "CountersignWarning");
    if (this.#running !== undefined) this.#wakeAfter(pauseAfterErrorMs);
  }

  #settleWaiters(otherwise?: Error): void {
    if (this.#waiters.length === 0) return;
    const isIdle = !this.#parts.queue.hasWork();
    if (!isIdle && otherwise === undefined) return;
    for (const { resolve, reject } of this.#waiters.splice(0)) {
      if (isIdle) resolve();
      else reject(otherwise);
    }
  }
}

function systemTimer(callback: () => void, delayMs: number): () => void {
  const timer = setTimeout(callback, delayMs);
  return () => clearTimeout(timer);
}
