import { readThrown } from "@countersign/inspector/loopback";
import type Database from "libsql";
import type { SandboxOptions } from "../service/options.ts";
import { Sql } from "../sql.ts";
import { Batcher } from "./batcher.ts";
import { listDeliveries, oneDelivery, type Delivery, type DeliveryFilter } from "./delivery.ts";
import { DeliveryControl } from "./delivery-control.ts";
import { DeliverySender, type DeliveryParts } from "./delivery-sender.ts";
import type { ServiceEvent } from "./envelope.ts";
import { resolveDeliveryOptions, type DeliveryOptions } from "./options.ts";
import { QueueTables, type QueuedDelivery, type RegisteredEndpoint } from "./queue-tables.ts";
import { deliverySchema } from "./schema.ts";
import { endpointTarget, type EndpointRegistration } from "./webhook-request.ts";

/** Calls back once after a delay, unless the returned function is called before. */
export type StartTimer = (callback: () => void, delayMs: number) => () => void;

export interface DeliveryServiceInit extends Pick<SandboxOptions, "clock" | "speed" | "ca" | "onAttempt"> {
  /** Tables are created when missing. */
  readonly database: Database.Database;
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
  readonly #batcher: Batcher;
  readonly #sender: DeliverySender;
  readonly #startTimer: StartTimer;
  readonly #onAttempt: DeliveryServiceInit["onAttempt"];
  readonly #onChange: NonNullable<DeliveryServiceInit["onChange"]>;
  readonly #underWay = new Map<number, Promise<void>>();
  readonly #waiters: Waiter[] = [];
  #running: AbortController | undefined;
  #cancelTimer: () => void = () => {};

  /** Creates missing tables; sends nothing before `start`. Throws an OptionError. */
  constructor(init: DeliveryServiceInit) {
    const { database, clock = Date.now, speed = 1, ca, startTimer = systemTimer, secrets = [] } = init;
    this.#onAttempt = init.onAttempt;
    this.#onChange = init.onChange ?? (() => {});
    this.#startTimer = startTimer;
    const options = resolveDeliveryOptions(init.options ?? {}, speed);
    database.exec(deliverySchema);
    const sql = new Sql(database);
    const parts = { sql, tables: new QueueTables(sql), options, clock, ca };
    const sender = new DeliverySender(parts);
    this.#parts = parts;
    this.#batcher = new Batcher(parts);
    this.#sender = sender;
    this.control = new DeliveryControl({ ...parts, sender, secrets, changed: (id) => this.#changed([id]) });
  }

  /** Throws a TypeError that says what is wrong, and shows no credential. */
  addEndpoint(registration: EndpointRegistration): RegisteredEndpoint {
    endpointTarget(registration);
    const { sql, tables } = this.#parts;
    const id = sql.atomically(() => tables.addEndpoint(registration));
    return { id, url: registration.url };
  }

  endpoints(): readonly RegisteredEndpoint[] {
    return this.#parts.tables.endpoints();
  }

  /** Writes events in the open transaction, or its own; they are sent after its commit. Throws a TypeError on a wrong event. */
  notify(events: readonly ServiceEvent[]): void {
    this.#parts.sql.atomically(() => this.#batcher.write(events));
    // By a timer, because the transaction of the caller may not have committed yet.
    this.#changed([]);
  }

  /** Oldest first. */
  list(filter?: DeliveryFilter): readonly Delivery[] {
    return listDeliveries(this.#parts.sql, filter);
  }

  /** Sends the same bytes again, by a delivery number, webhook_id or event_id: once if delivered, else for a new retry period. */
  resend(id: string): readonly Delivery[] {
    const { sql, tables, options, clock } = this.#parts;
    const deliveries = sql.atomically(() => {
      const nowMs = Math.floor(clock());
      const ids = tables.deliveryIdsOf(id);
      for (const one of ids) tables.makeDue(one, nowMs, nowMs + Math.ceil(options.retryForMs));
      return ids.map((one) => oneDelivery(sql, one));
    });
    this.#changed(deliveries.map((delivery) => delivery.id));
    return deliveries;
  }

  start(): void {
    if (this.#running !== undefined) return;
    this.#running = new AbortController();
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
      for (const { id } of this.#parts.tables.endpoints()) this.#fill(id, nowMs, running.signal);
      this.#wakeForNext(nowMs);
      this.#settleWaiters();
    } catch (error) {
      this.#pauseAfter(error);
    }
  }

  #formWebhooks(nowMs: number): void {
    const dueMs = this.#batcher.dueMs();
    if (dueMs === undefined || dueMs > nowMs) return;
    this.#parts.sql.atomically(() => this.#batcher.formAll());
    this.#onChange([]);
  }

  #fill(endpointId: string, nowMs: number, signal: AbortSignal): void {
    // Requests under way are still due, and come first: they count for `concurrency`.
    for (const due of this.#parts.tables.due(endpointId, nowMs, this.#parts.options.concurrency)) {
      if (!this.#underWay.has(due.id)) this.#underWay.set(due.id, this.#send(due, signal));
    }
  }

  async #send(due: QueuedDelivery, signal: AbortSignal): Promise<void> {
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

  // Subscribers must not change the delivery.
  #tell(deliveryId: number): void {
    if (this.#onAttempt === undefined) return;
    try {
      this.#onAttempt(oneDelivery(this.#parts.sql, deliveryId));
    } catch (error) {
      process.emitWarning(`onAttempt threw: ${readThrown(error).message}`, "CountersignWarning");
    }
  }

  // What is due already waits for a request to end, which wakes by itself.
  #wakeForNext(nowMs: number): void {
    const times = [this.#parts.tables.nextDueMs(nowMs), this.#batcher.dueMs()].filter(
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
    const isIdle = !this.#parts.tables.hasWork();
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
