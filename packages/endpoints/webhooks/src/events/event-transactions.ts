import {
  keyNotices,
  answerOf,
  Transactor,
  type OpenTransaction,
  type Steps,
} from "@countersign/idempotency/door";
import type { DrainReport } from "@countersign/idempotency";
import type { WebhookEnvelope } from "../envelope/events.ts";
import { EventBatches, type BatchEvent, type Ended, type Routes } from "./event-batches.ts";
import { assertHandled } from "./event-dispatch.ts";
import type { RoutedHandler } from "./failed-event.ts";
import { factoryName, type resolveTransactionHandlerOptions } from "./webhook-handler-options.ts";
import type { EventDelivery, TransactionEventContext, WebhookOutcome } from "./webhook-handler-types.ts";

/** Handles an envelope's events in transactions with their keys: a savepoint each. */
export class EventTransactions {
  readonly #transactor: Transactor<never>;
  readonly #batches: EventBatches;
  /** A tenth of a transaction's time: what begins by then has the rest of it. */
  readonly #begunWithinMs: number;

  constructor(
    {
      stores,
      keyPrefix,
      onError,
      ...options
    }: Omit<ReturnType<typeof resolveTransactionHandlerOptions>, "fallback">,
    routes: Routes,
  ) {
    const transactor = new Transactor(stores, options, factoryName);
    this.#transactor = transactor;
    this.#begunWithinMs = options.transactionTimeoutMs / 10;
    this.#batches = new EventBatches({
      transactor,
      keyPrefix,
      routes,
      reporting: { factory: factoryName, onError, keys: keyNotices(factoryName) },
      keysOf: (batch) => batch.map(({ attempt }) => attempt.claim),
      keepsOrder: false,
      steps: (batch, open) => this.#steps(batch, open),
    });
  }

  handle(envelope: WebhookEnvelope): Promise<WebhookOutcome> {
    return this.#batches.handle(envelope);
  }

  async drain(timeoutMs: number): Promise<DrainReport> {
    return { keys: await this.#transactor.drain(timeoutMs), claims: 0 };
  }

  *#steps(batch: readonly BatchEvent[], { tx, begun }: OpenTransaction<never>): Steps<readonly Ended[]> {
    const ended: Ended[] = [];
    const endsAtMs = performance.now() + this.#begunWithinMs;
    const lastBegun = begun.keys.map(({ status }) => status).lastIndexOf("begun");
    for (const [index, { attempt, handlers }] of batch.entries()) {
      const state = begun.keys[index];
      if (state === undefined) throw new TypeError("the store gave no answer to a key");
      if (state.status !== "begun") {
        ended.push({ refused: state });
      } else if (this.#isFull(ended, endsAtMs)) {
        // The others wait for another transaction.
        const rest = batch.slice(index).filter((_, later) => begun.keys[index + later]?.status === "begun");
        yield* this.#transactor.giveBack(
          tx,
          rest.map((event) => event.attempt.claim),
        );
        const states = begun.keys.slice(index);
        return [...ended, ...states.map((late): Ended => endOf(late))];
      } else {
        const context = { webhookId: attempt.delivery.webhookId, tx };
        const behind = yield* this.#transactor.behindSavepoint(tx, [attempt.claim], index < lastBegun, () =>
          handleAll(handlers, attempt.delivery, context),
        );
        ended.push("error" in behind ? behind : { outcome: "done" });
      }
    }
    return ended;
  }

  /** Whether a transaction with these events takes no further one: the event loop must turn, or others wait for its rows. */
  #isFull(ended: readonly Ended[], endsAtMs: number): boolean {
    if (this.#batches.isOverdue) return ended.some((end) => "outcome" in end);
    return ended.length > 0 && performance.now() >= endsAtMs;
  }
}

function endOf(state: OpenTransaction<never>["begun"]["keys"][number]): Ended {
  return state.status === "begun" ? { outcome: "again" } : { refused: state };
}

/** Calls the handlers of one event after each other. */
export function* handleAll(
  handlers: readonly RoutedHandler[],
  { event }: Pick<EventDelivery, "event">,
  context: TransactionEventContext<never>,
): Steps<void> {
  for (const handler of handlers) {
    assertHandled(yield* answerOf<unknown>(Reflect.apply(handler, undefined, [event, context])));
  }
}
