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
import type { InvalidWebhookEvent, WebhookEnvelope, WebhookEvent } from "../envelope/events.ts";
import { EventBatches, type BatchEvent, type Ended, type Routes } from "../events/event-batches.ts";
import { eventFingerprint, identityOf } from "../events/event-identity.ts";
import type { Receiving } from "../events/event-routes.ts";
import { handleAll } from "../events/event-transactions.ts";
import {
  callHook,
  failureOf,
  malformedError,
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
    for (const event of [...envelope.events, ...envelope.invalid]) assertReceived(event);
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
    const tasks = batch.map(({ attempt }) => this.#taskOf(attempt.delivery));
    return yield* this.#owner.handle(open, [], {}, function* (): Steps<readonly Ended[]> {
      const added = yield* answerOf(stores.work.add(open.tx, name, tasks));
      return added.map((answer): Ended => {
        if (answer.status === "added") return { outcome: "accepted" };
        return { refused: { status: "done", fingerprint: keptFingerprint(answer.body) } };
      });
    });
  }

  /**
   * The event as a task, with its text as it was verified. A malformed one has no entity: no other event waits for it. Throws a TypeError for
   * an event that the parser did not make.
   */
  #taskOf(delivery: EventDelivery): NewTask {
    const { event, invalid, webhookId } = delivery;
    const text = receivedText(event ?? invalid);
    const body = `{"webhook_id":${JSON.stringify(webhookId)},"event":${text}}`;
    const entity = event && this.#entityOf(event);
    return { id: identityOf(delivery), body, entity };
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
    if (delivery.invalid !== undefined) throw unreadable(delivery.invalid);
    const { type, webhookId } = delivery;
    // It was malformed when it came, and this version of the code reads it: it takes its place among the events of its id.
    if (task.id !== delivery.event_id) {
      const admitted = { id: delivery.event_id, body: task.body, entity: this.#entityOf(delivery.event) };
      const { name, stores } = this.#options;
      return { inTransaction: (tx) => answerOf(stores.work.add(tx, name, [admitted])) };
    }
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
    let delivery: EventDelivery;
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
    const told = delivery.invalid === undefined ? error : malformedError(delivery.invalid);
    const failed = { outcome: isDead ? "dead-lettered" : "failed", error: told } as const;
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

/** Reads the body of a task. Throws a TaskError, final, for one that no envelope held: another attempt would read the same. */
function deliveryOf(body: string): EventDelivery {
  try {
    const kept = readKept(Buffer.from(body));
    const { event_id, type } = kept.event ?? kept.invalid;
    return { ...kept, event_id, type };
  } catch (error) {
    throw new TaskError("the task's body is no event", { isFinal: true, cause: error });
  }
}

/** The end of a malformed event: a dead letter, since another attempt would read the same. */
function unreadable(invalid: InvalidWebhookEvent): TaskError {
  const cause = malformedError(invalid);
  return new TaskError(`${invalid.code}: ${invalid.detail}`, { isFinal: true, cause });
}

/** The fingerprint of a kept event; empty for one that cannot be read. */
function keptFingerprint(body: string): string {
  try {
    return eventFingerprint(deliveryOf(body));
  } catch {
    return "";
  }
}
