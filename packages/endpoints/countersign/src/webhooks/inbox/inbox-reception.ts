import { appAnswers } from "@countersign/core/internal";
import type { DrainOptions, DrainReport } from "@countersign/idempotency";
import {
  answerOf,
  keyNotices,
  readDrainTimeout,
  transactionOptions,
  TransactionOwner,
  type OpenTransaction,
  type Steps,
} from "@countersign/idempotency/internal";
import { TaskError, type ClaimedTask, type NewTask } from "@countersign/idempotency/work";
import { Worker, type TaskWork } from "@countersign/idempotency/work/internal";
import { readKept } from "../envelope/envelope.ts";
import { assertReceived, receivedText } from "../envelope/event-text.ts";
import type { WebhookEnvelope, WebhookEvent } from "../envelope/events.ts";
import { EventBatches, type BatchEvent, type Ended, type Routes } from "../events/event-batches.ts";
import { eventFingerprint } from "../events/event-identity.ts";
import type { Receiving } from "../events/event-routes.ts";
import { handleAll } from "../events/event-transactions.ts";
import {
  callHook,
  failureOf,
  reportFailure,
  type Reporting,
  type RoutedHandler,
} from "../events/failed-event.ts";
import { latestOnlyHandler } from "../events/latest-only.ts";
import type { EventDelivery, WebhookOutcome } from "../events/webhook-handler-types.ts";
import { factoryName, type ResolvedInboxOptions } from "./inbox-options.ts";
import type { AtLeastOnceContext, InboxEventContext } from "./inbox-types.ts";

type OutsideContext = Parameters<Extract<TaskWork<never>, { readonly outside: unknown }>["outside"]>[0];

/** Adds events as tasks, and works on them. */
export class InboxReception implements Receiving {
  /** The handlers that act outside of the database, by type. */
  readonly outside: Map<string, RoutedHandler> = new Map<string, RoutedHandler>();
  readonly withOptions: NonNullable<Receiving["withOptions"]>;
  readonly #options: ResolvedInboxOptions;
  readonly #routes: Routes;
  readonly #reporting: Reporting;
  readonly #owner: TransactionOwner<never>;
  readonly #batches: EventBatches;
  readonly #worker: Worker<never>;

  constructor(options: ResolvedInboxOptions, routes: Routes) {
    const { stores, name, onError } = options;
    this.#options = options;
    this.#routes = routes;
    this.#reporting = {
      factory: factoryName,
      onError,
      keys: keyNotices(factoryName),
    };
    this.withOptions = latestOnlyHandler({ factory: factoryName, scope: `inbox ${name}`, stores });
    const { waitMs, storeTimeoutMs, idleTimeoutMs } = options;
    const unused = { recovery: "hold", maxWaiters: 0, retryAfterSeconds: 5 } as const;
    this.#owner = new TransactionOwner(stores, {
      waitMs,
      storeTimeoutMs,
      idleTimeoutMs,
      // No handler runs here: what takes longer stands idle.
      transactionTimeoutMs: idleTimeoutMs,
      ...unused,
    });
    this.#batches = new EventBatches({
      owner: this.#owner,
      keyPrefix: `${name}:`,
      routes,
      reporting: this.#reporting,
      // The row of each task says whose it is.
      keysOf: () => [],
      keepsOrder: true,
      steps: (batch, open) => this.#add(batch, open),
    });
    this.#worker = new Worker({
      factory: factoryName,
      queue: name,
      stores,
      options,
      workOf: (task) => this.#workOf(task),
      onFailure: (task, error, isDead) => this.#failed(task, error, isDead),
    });
  }

  assertFit(handler: unknown, place: string): void {
    transactionOptions.assertInMode(this.#options.stores, handler, factoryName, place);
  }

  start(): void {
    if (!this.#options.receiveOnly) this.#worker.start();
  }

  async handle(envelope: WebhookEnvelope): Promise<WebhookOutcome> {
    for (const event of envelope.events) assertReceived(event);
    this.start();
    const outcome = await this.#batches.handle(envelope);
    this.#worker.wake();
    return outcome;
  }

  async drain(options?: DrainOptions): Promise<DrainReport> {
    const timeoutMs = readDrainTimeout(options);
    const left = await Promise.all([this.#owner.drain(timeoutMs), this.#worker.drain(timeoutMs)]);
    return { keys: left[0] + left[1], claims: 0 };
  }

  *#add(batch: readonly BatchEvent[], open: OpenTransaction<never>): Steps<readonly Ended[]> {
    const { name, stores } = this.#options;
    const tasks = batch.map(({ attempt }) => {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a batch has no invalid events
      const delivery = attempt.delivery as ValidDelivery;
      return taskOf(delivery, this.#entityOf(delivery.event));
    });
    return yield* this.#owner.handle(open, [], {}, function* (): Steps<readonly Ended[]> {
      const added = yield* answerOf(stores.work.add(open.tx, name, tasks));
      return added.map((answer): Ended => {
        if (answer.status === "added") return { outcome: "accepted" };
        return { refused: { status: "done", fingerprint: keptFingerprint(answer.body) } };
      });
    });
  }

  /** Throws a TypeError where the app's function throws: another attempt would ask the same. */
  #entityOf(event: WebhookEvent): string | undefined {
    try {
      const entity = this.#options.entityOf(event);
      // Without TypeScript.
      if (appAnswers.isVainPromise(entity)) throw new TypeError("it returned a promise");
      return entity;
    } catch (error) {
      throw new TypeError(`${factoryName}: entityOf failed`, { cause: error });
    }
  }

  #workOf(task: ClaimedTask): TaskWork<never> {
    const delivery = deliveryOf(task.body);
    const { type, webhookId } = delivery;
    const outside = this.outside.get(type);
    if (outside !== undefined) {
      return { outside: (context) => this.#actOutside(outside, delivery, context) };
    }
    const handlers = this.#routes.handlersOf(type);
    // Such as an older process: another may have one.
    if (handlers.length === 0) throw new Error(`no handler here for the type ${JSON.stringify(type)}`);
    const { attempt } = task;
    const contextOf = (tx: never): InboxEventContext<never> => ({ webhookId, tx, attempt });
    return { inTransaction: (tx) => handleAll(handlers, delivery, contextOf(tx)) };
  }

  #actOutside(handler: RoutedHandler, { event, webhookId }: ValidDelivery, outside: OutsideContext): unknown {
    const { stores } = this.#options;
    const { attempt, signal } = outside;
    const context: AtLeastOnceContext<never, "async"> = {
      webhookId,
      attempt,
      signal,
      // The promise that it was given: of another one nobody might hear that it rejects.
      commit: (work) =>
        outside.commit(function* (tx) {
          transactionOptions.assertInMode(stores, work, factoryName, "commit");
          return yield* answerOf(work(tx));
        }),
    };
    return Reflect.apply(handler, undefined, [event, context]);
  }

  #failed(task: ClaimedTask, error: unknown, isDead: boolean): void {
    const { name, onDeadLetter, onError } = this.#options;
    let delivery: ValidDelivery;
    try {
      delivery = deliveryOf(task.body);
    } catch {
      // A dead letter, of which the worker tells.
      return;
    }
    const key = `${name}:${task.id}`;
    const attempt = {
      delivery,
      claim: { key, fingerprint: "", token: task.token },
      number: task.attempt,
    };
    const failed = { outcome: isDead ? "dead-lettered" : "failed", error } as const;
    // Of dead letters the worker tells too.
    if (!isDead || onError !== undefined) reportFailure(this.#reporting, attempt, failed);
    if (!isDead || onDeadLetter === undefined) return;
    const message = "has an onDeadLetter() that failed";
    const failing = (fault: unknown): void =>
      this.#reporting.keys.alarm({ code: "dead-letter-failed", key, message, error: fault });
    void callHook(onDeadLetter, failureOf(attempt, failed), failing);
  }
}

/** An event that was received. */
type ValidDelivery = EventDelivery & { readonly event: WebhookEvent };

/** The event as a task, with its text as it was verified. Throws a TypeError for an event that the parser did not make. */
function taskOf({ webhookId, event_id: id, event }: ValidDelivery, entity: string | undefined): NewTask {
  const body = `{"webhook_id":${JSON.stringify(webhookId)},"event":${receivedText(event)}}`;
  return { id, body, entity };
}

/** Reads the body of a task. Throws a TaskError, final, for one that is no event: another attempt would read the same. */
function deliveryOf(body: string): ValidDelivery {
  try {
    const { webhookId, event } = readKept(Buffer.from(body));
    const { event_id, type } = event;
    return { webhookId, event_id, type, event, invalid: undefined };
  } catch (error) {
    throw new TaskError("the task's body is no event", { isFinal: true, cause: error });
  }
}

/** The fingerprint of a kept event; empty for one that cannot be read. */
function keptFingerprint(body: string): string {
  try {
    return eventFingerprint(deliveryOf(body));
  } catch {
    return "";
  }
}
