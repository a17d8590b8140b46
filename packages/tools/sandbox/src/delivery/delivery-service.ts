import type Database from "libsql";
import { messageOf } from "@countersign/inspector/loopback";
import { Batcher } from "./batcher.ts";
import { assertCredentials } from "./credentials.ts";
import { createDeliveryControl, type DeliveryControl } from "./delivery-control.ts";
import { DeliverySender } from "./delivery-sender.ts";
import { IdleWaiters } from "./idle-waiters.ts";
import { createListing, type DeliveryListing } from "./listing.ts";
import { resolveDeliveryOptions, type ResolvedDeliveryOptions } from "./options.ts";
import { QueueTables, type DueDelivery } from "./queue-tables.ts";
import { deliverySchema } from "./schema.ts";
import { atomically } from "./transaction.ts";
import type {
  Delivery,
  DeliveryFilter,
  DeliveryServiceInit,
  EndpointRegistration,
  RegisteredEndpoint,
  ServiceEvent,
  StartTimer,
} from "./types.ts";
import { targetOf } from "./webhook-request.ts";

/**
 * Delivers every event to every endpoint, at least once or until the retry period is over. All state is in the database: what
 * was not finished when a process ended is sent again by the next one. One service at a time works on a database.
 */
export interface DeliveryService {
  /** Throws a TypeError that says what is wrong with the registration, and shows no credential. */
  addEndpoint(registration: EndpointRegistration): RegisteredEndpoint;
  endpoints(): readonly RegisteredEndpoint[];
  /**
   * Writes events, in the transaction that is open on the database or in one of its own; they are sent when it has committed.
   * Throws a TypeError on an event that cannot be written.
   */
  notify(events: readonly ServiceEvent[]): void;
  /** Oldest first. */
  list(filter?: DeliveryFilter): readonly Delivery[];
  /**
   * Sends the same bytes again, now: one delivery by its number, or those of a webhook_id or event_id. What was delivered is sent
   * once more and no further; anything else begins a new retry period. Returns them; none when the id is unknown.
   */
  resend(id: string): readonly Delivery[];
  /** What a person does to single deliveries, and sees of them. */
  readonly control: DeliveryControl;
  start(): void;
  /** Sends nothing more. Waits `stopWaitMs` at most; what was cut off is pending and goes out after the next start. */
  stop(): Promise<void>;
  /** Resolves when no event, webhook or retry is left to send; rejects when the service stops before. */
  idle(): Promise<void>;
}

/** Creates the tables when they are missing; sends nothing before `start`. Throws a TypeError on an option that cannot be used. */
export function createDeliveryService(init: DeliveryServiceInit): DeliveryService {
  return new QueuedDeliveryService(init);
}

const maxTimerMs = 2_147_483_647;
const pauseAfterErrorMs = 1000;

class QueuedDeliveryService implements DeliveryService {
  readonly #database: Database.Database;
  readonly #options: ResolvedDeliveryOptions;
  readonly #clock: () => number;
  readonly #startTimer: StartTimer;
  readonly #tables: QueueTables;
  readonly #batcher: Batcher;
  readonly #sender: DeliverySender;
  readonly #listing: DeliveryListing;
  readonly #onAttempt: DeliveryServiceInit["onAttempt"];
  readonly #onChange: NonNullable<DeliveryServiceInit["onChange"]>;
  readonly control: DeliveryControl;
  readonly #waiters: IdleWaiters = new IdleWaiters();
  readonly #underWay = new Map<number, Promise<void>>();
  #running: AbortController | undefined;
  #cancelTimer: () => void = () => {};

  constructor(init: DeliveryServiceInit) {
    const { database, clock = Date.now, speed = 1, ca, options = {}, startTimer = systemTimer } = init;
    this.#onAttempt = init.onAttempt;
    this.#onChange = init.onChange ?? (() => {});
    this.#database = database;
    this.#options = resolveDeliveryOptions(options, speed);
    this.#clock = clock;
    this.#startTimer = startTimer;
    database.exec(deliverySchema);
    this.#tables = new QueueTables(database);
    this.#batcher = new Batcher(this.#tables, this.#options, clock);
    this.#sender = new DeliverySender({ database, tables: this.#tables, options: this.#options, clock, ca });
    this.#listing = createListing(database);
    const parts = { tables: this.#tables, listing: this.#listing, sender: this.#sender };
    const changed = (id: number): void => this.#changed([id]);
    const { secrets = [] } = init;
    this.control = createDeliveryControl({
      database,
      ...parts,
      secrets,
      options: this.#options,
      clock,
      changed,
    });
  }

  addEndpoint(registration: EndpointRegistration): RegisteredEndpoint {
    assertCredentials(registration);
    targetOf(registration.url, registration.allowHttp);
    const id = atomically(this.#database, () => this.#tables.addEndpoint(registration));
    return { id, url: registration.url };
  }

  endpoints(): readonly RegisteredEndpoint[] {
    return this.#tables.endpoints();
  }

  notify(events: readonly ServiceEvent[]): void {
    atomically(this.#database, () => this.#batcher.write(events));
    // By a timer, because the transaction of the caller may not have committed yet.
    this.#changed([]);
  }

  list(filter?: DeliveryFilter): readonly Delivery[] {
    return this.#listing.list(filter);
  }

  resend(id: string): readonly Delivery[] {
    const deliveries = atomically(this.#database, () => {
      const nowMs = Math.floor(this.#clock());
      const ids = this.#tables.deliveryIdsOf(id);
      for (const one of ids) this.#tables.makeDue(one, nowMs, nowMs + Math.ceil(this.#options.retryForMs));
      return ids.map((one) => this.#listing.one(one));
    });
    this.#changed(deliveries.map((delivery) => delivery.id));
    return deliveries;
  }

  start(): void {
    if (this.#running !== undefined) return;
    this.#running = new AbortController();
    this.#wakeAfter(0);
  }

  async stop(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    this.#cancelTimer();
    const ended = Promise.all(this.#underWay.values());
    const cutOff = setTimeout(() => running?.abort(), this.#options.stopWaitMs);
    await ended;
    clearTimeout(cutOff);
    if (this.#waiters.any) this.#settleWaiters(new Error("the service stopped with webhooks left to send"));
  }

  idle(): Promise<void> {
    const idle = this.#waiters.add();
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
      const nowMs = this.#clock();
      this.#formWebhooks(nowMs);
      for (const { id } of this.#tables.endpoints()) this.#fill(id, nowMs, running.signal);
      this.#wakeForNext(nowMs);
      this.#settleWaiters();
    } catch (error) {
      this.#pauseAfter(error);
    }
  }

  #formWebhooks(nowMs: number): void {
    const dueMs = this.#batcher.dueMs();
    if (dueMs === undefined || dueMs > nowMs) return;
    atomically(this.#database, () => this.#batcher.formAll());
    this.#onChange([]);
  }

  #fill(endpointId: string, nowMs: number, signal: AbortSignal): void {
    // What is under way is still due, and came first: with it, the row of those due is as long as it may be.
    for (const due of this.#tables.due(endpointId, nowMs, this.#options.concurrency)) {
      if (!this.#underWay.has(due.id)) this.#underWay.set(due.id, this.#send(due, signal));
    }
  }

  async #send(due: DueDelivery, signal: AbortSignal): Promise<void> {
    try {
      await this.#sender.send(due, signal);
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

  // Whoever listens is not part of the delivery.
  #tell(deliveryId: number): void {
    if (this.#onAttempt === undefined) return;
    try {
      this.#onAttempt(this.#listing.one(deliveryId));
    } catch (error) {
      process.emitWarning(`onAttempt threw: ${messageOf(error)}`, "CountersignWarning");
    }
  }

  // What is due already waits for a request to end, which wakes by itself.
  #wakeForNext(nowMs: number): void {
    const times = [this.#tables.nextDueMs(nowMs), this.#batcher.dueMs()].filter((time) => time !== undefined);
    this.#cancelTimer();
    if (times.length > 0) this.#wakeAfter(Math.max(0, Math.ceil(Math.min(...times) - nowMs)));
  }

  // A locked or full database is no reason to end the process, and none to try without a pause.
  #pauseAfter(error: unknown): void {
    process.emitWarning(`webhook deliveries pause: ${messageOf(error)}`, "CountersignWarning");
    if (this.#running !== undefined) this.#wakeAfter(pauseAfterErrorMs);
  }

  #settleWaiters(otherwise?: Error): void {
    if (!this.#waiters.any) return;
    if (!this.#tables.hasWork()) this.#waiters.resolve();
    else if (otherwise !== undefined) this.#waiters.reject(otherwise);
  }
}

function systemTimer(callback: () => void, delayMs: number): () => void {
  const timer = setTimeout(callback, delayMs);
  return () => clearTimeout(timer);
}
