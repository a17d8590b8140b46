import { inTime } from "@countersign/core/internal";
import {
  keyNotices,
  answerOf,
  readDrainTimeout,
  transactionOptions,
  TransactionOwner,
  type OpenTransaction,
  type Steps,
} from "@countersign/idempotency/internal";
import { EventBatches, type BatchEvent, type Ended, type Routes } from "./event-batches.ts";
import type { Receiving } from "./event-routes.ts";
import { assertHandled, giveUpMalformed, type Reporting, type RoutedHandler } from "./failed-event.ts";
import { latestOnlyHandler } from "./latest-only.ts";
import { factoryName, type resolveTransactionHandlerOptions } from "./webhook-handler-options.ts";
import type { DeadLetterHook, EventDelivery, TransactionEventContext } from "./webhook-handler-types.ts";

/** Handles an envelope's events in transactions with their keys: all in one, and after a failure each of the others in its own. */
export function transacting(
  {
    stores,
    keyPrefix,
    onError,
    onDeadLetter,
    ...options
  }: Omit<ReturnType<typeof resolveTransactionHandlerOptions>, "fallback">,
  routes: Routes,
): Receiving {
  const owner = new TransactionOwner(stores, options, factoryName);
  const reporting: Reporting = { factory: factoryName, onError, keys: keyNotices(factoryName) };
  const { transactionTimeoutMs } = options;
  const unsettled = (): Error => new Error(`onDeadLetter did not settle within ${transactionTimeoutMs} ms`);
  const keep: DeadLetterHook | undefined =
    onDeadLetter && ((failure) => inTime(onDeadLetter(failure), transactionTimeoutMs, unsettled));
  const batches = new EventBatches({
    owner,
    keyPrefix,
    routes,
    reporting,
    endMalformed: (attempt) => giveUpMalformed(reporting, attempt, keep),
    keysOf: (batch) => batch.map(({ attempt }) => attempt.claim),
    keepsOrder: false,
    steps,
  });
  // What begins by then has the rest of a transaction's time.
  const begunWithinMs = transactionTimeoutMs / 10;

  function* steps(
    batch: readonly BatchEvent[],
    open: OpenTransaction<never>,
    begins: (event: BatchEvent | undefined) => void,
  ): Steps<readonly Ended[]> {
    const { tx, begun, keys } = open;
    const ended: Ended[] = [];
    const endsAtMs = performance.now() + begunWithinMs;
    const lastBegun = begun.keys.map(({ status }) => status).lastIndexOf("begun");
    for (const [index, event] of batch.entries()) {
      const { attempt, handlers } = event;
      const state = begun.keys[index];
      const key = keys[index];
      if (state === undefined || key === undefined) throw new TypeError("the store gave no answer to a key");
      if (state.status !== "begun") {
        ended.push({ refused: state });
      } else if (isFull(ended, endsAtMs)) {
        // The others wait for another transaction.
        const rest = keys.slice(index).filter((_, later) => begun.keys[index + later]?.status === "begun");
        yield* owner.giveBack(tx, rest);
        const states = begun.keys.slice(index);
        return [...ended, ...states.map((late): Ended => endOf(late))];
      } else {
        const context = { webhookId: attempt.delivery.webhookId, tx };
        begins(event);
        yield* owner.handle(open, [key], { more: index < lastBegun }, () =>
          handleAll(handlers, attempt.delivery, context),
        );
        begins(undefined);
        ended.push({ outcome: "done" });
      }
    }
    return ended;
  }

  /** Whether a transaction with these events takes no further one: the event loop must turn, or others wait for its rows. */
  function isFull(ended: readonly Ended[], endsAtMs: number): boolean {
    if (batches.isOverdue) return ended.some((end) => "outcome" in end);
    return ended.length > 0 && performance.now() >= endsAtMs;
  }

  return {
    handle: (envelope) => batches.handle(envelope),
    async drain(drainOptions) {
      return { keys: await owner.drain(readDrainTimeout(drainOptions)), claims: 0 };
    },
    assertFit: (handler, place) => transactionOptions.assertInMode(stores, handler, factoryName, place),
    withOptions: latestOnlyHandler({ factory: factoryName, scope: `handler ${keyPrefix}`, stores }),
  };
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
