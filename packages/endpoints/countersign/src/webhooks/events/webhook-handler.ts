import { traces } from "@countersign/core";
import { Deadlines } from "@countersign/core/internal";
import type { TransactionMode } from "@countersign/idempotency";
import { transactionOptions } from "@countersign/idempotency/internal";
import type { Routes } from "./event-batches.ts";
import { dispatchEvents } from "./event-dispatch.ts";
import { RoutingHandler, type Receiving } from "./event-routes.ts";
import { traceEvent } from "./event-identity.ts";
import { transacting } from "./event-transactions.ts";
import type { EventState } from "./failed-event.ts";
import { handleEvent } from "./owned-event.ts";
import {
  factoryName,
  resolveTransactionHandlerOptions,
  resolveWebhookHandlerOptions,
  type ResolvedWebhookHandlerOptions,
} from "./webhook-handler-options.ts";
import type {
  CreateWebhookHandlerOptions,
  HandlerResult,
  TransactionEventContext,
  TransactionHandlerOptions,
  WebhookHandler,
} from "./webhook-handler-types.ts";

/**
 * Handles each event once, whatever the order and grouping of deliveries. With `stores` a handler's writes and its event commit in one
 * transaction, which its context holds as `tx`. With `store` the handler completes its event itself, or by returning; one whose owner fell
 * silent runs again. Throws a TypeError on a bad option.
 */
export function createWebhookHandler<Tx, Mode extends TransactionMode>(
  options: TransactionHandlerOptions<Tx, Mode>,
): WebhookHandler<TransactionEventContext<Tx>, HandlerResult<Mode>>;
export function createWebhookHandler(options: CreateWebhookHandlerOptions): WebhookHandler;
export function createWebhookHandler(options: object): WebhookHandler<never> {
  if (typeof options !== "object" || options === null || !("stores" in options)) {
    const { fallback, ...resolved } = resolveWebhookHandlerOptions(options);
    return new RoutingHandler({ factory: factoryName, fallback }, (routes) => claiming(resolved, routes));
  }
  const { fallback, ...resolved } = resolveTransactionHandlerOptions(options);
  transactionOptions.assertInMode(resolved.stores, fallback, factoryName, "fallback");
  return new RoutingHandler({ factory: factoryName, fallback }, (routes) => transacting(resolved, routes));
}

/** Owns the key of each event by a lease (owned-event.ts). */
function claiming(options: Omit<ResolvedWebhookHandlerOptions, "fallback">, routes: Routes): Receiving {
  const { owner, keyPrefix, recovery, concurrency, timeoutMs, deadLetters, onError } = options;
  const deadlines = new Deadlines(timeoutMs, { keepsAlive: false });
  const state: EventState = {
    factory: factoryName,
    owner,
    keys: owner.keys,
    keyPrefix,
    recovery,
    deadLetters,
    onError,
    deadlines,
    ...routes,
  };
  return {
    handle: (envelope) =>
      dispatchEvents(envelope, concurrency, (delivery) =>
        traces.event.hasSubscribers
          ? traceEvent(delivery, undefined, (trace) => handleEvent(state, delivery, trace))
          : handleEvent(state, delivery),
      ),
    drain: (drainOptions) => owner.drain(drainOptions),
  };
}
