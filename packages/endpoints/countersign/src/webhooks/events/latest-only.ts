import { hash } from "node:crypto";
import {
  appAnswers,
  holderOf,
  option,
  optionError,
  readOptions,
  type OptionOwner,
  type OptionTable,
} from "@countersign/core/internal";
import { answerOf, runStepsIn, transactionOptions, type Steps } from "@countersign/idempotency/internal";
import type { TransactionStores } from "@countersign/idempotency";
import { workerOptions } from "@countersign/idempotency/work/internal";
import { knownEventTypes } from "../envelope/envelope.ts";
import type { WebhookEvent } from "../envelope/events.ts";
import type { Receiving } from "./event-routes.ts";
import type { RoutedHandler } from "./failed-event.ts";
import type {
  EventHandlerOptions,
  LatestOnlyOptions,
  TransactionEventContext,
} from "./webhook-handler-types.ts";

export interface LatestOnlyInit {
  readonly factory: string;
  /** Keeps the times of different handlers apart. */
  readonly scope: string;
  readonly stores: TransactionStores<never>;
}

const handlerTable = {
  latestOnly: option.optional(option.own(readLatestOnly)),
} satisfies OptionTable<EventHandlerOptions<never, never, never>, unknown>;

const latestTable = {
  subject: option.optional(option.call<(event: never) => string>(), "its entity"),
  onStale: option.optional(option.call<RoutedHandler>(), "nothing"),
} satisfies OptionTable<LatestOnlyOptions<never, never, never>, unknown>;

/** Returns what gives a handler its option `latestOnly`: the newest time is written, or found, before the handler, in its transaction. */
export function latestOnlyHandler({
  factory,
  scope,
  stores,
}: LatestOnlyInit): NonNullable<Receiving["withOptions"]> {
  return (handler, { method, type, options = {} }) => {
    const owner = holderOf(factory, `${method}(${JSON.stringify(type)})`);
    const { latestOnly } = readOptions(owner, handlerTable, options);
    if (latestOnly === undefined) return handler;
    const { subject, onStale } = latestOnly;
    const place = holderOf(owner, "latestOnly");
    if (subject === undefined && !knownEventTypes.includes(type)) {
      throw optionError(place, "subject", "a function: only the spec's types have a default", subject);
    }
    const { work } = workerOptions.readStores<never>(stores, factory, "stores");
    transactionOptions.assertInMode(stores, onStale, place, "onStale");
    function* steps(event: WebhookEvent, context: TransactionEventContext<never>): Steps<unknown> {
      const named: unknown =
        subject === undefined ? entityOf(event) : Reflect.apply(subject, undefined, [event]);
      const mark = { scope, subject: subjectOf(type, named, place), at: event.timestamp.epochNanoseconds };
      const called = (yield* answerOf(work.advance(context.tx, mark))) ? handler : onStale;
      if (called === undefined) return undefined;
      return yield* answerOf(Reflect.apply(called, undefined, [event, context]));
    }
    return (event, context) => runStepsIn(work.mode, steps(event, context));
  };
}

function readLatestOnly(given: unknown, owner: OptionOwner, name: string): LatestOnly {
  return readOptions(holderOf(owner, name), latestTable, given === true ? {} : given);
}

interface LatestOnly {
  readonly subject: ((event: never) => string) | undefined;
  readonly onStale: RoutedHandler | undefined;
}

const longestSubject = 512;

/** With the type: an event must not be skipped for a newer one of another type, nor for another kind of thing with the same id. */
function subjectOf(type: string, named: unknown, owner: OptionOwner): string {
  if (appAnswers.isVainPromise(named) || typeof named !== "string" || named === "") {
    throw optionError(owner, "subject", "a function that returns a string that is not empty", named);
  }
  const subject = JSON.stringify([type, named]);
  return subject.length <= longestSubject ? subject : `#${hash("sha256", subject, "base64url")}`;
}

/** The buyer, seller or payment request that an event of the spec is about; undefined for other types. */
export function entityOf(event: WebhookEvent): string | undefined {
  switch (event.type) {
    case "buyer.status_changed":
      return `buyer:${event.data.buyer_id}`;
    case "seller.status_changed":
      return `seller:${event.data.seller_id}`;
    case "payment_request.repayment.repaid":
    case "payment_request.repayment.reminder":
      return `payment_request:${event.data.payment_request_id}`;
    default:
      return undefined;
  }
}
