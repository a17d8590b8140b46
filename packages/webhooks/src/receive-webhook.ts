import {
  assertKnownOptions,
  chain,
  guard,
  isPromiseLike,
  optionError,
  type Middleware,
} from "@countersign/guard";
import { verifiedPayload } from "@countersign/webhook-hmac";
import { readWebhookEnvelope, resolveMaxEvents, type WebhookEnvelopeOptions } from "./envelope.ts";
import type { WebhookEnvelope } from "./events.ts";
import { eventsNotDone, payloadNotVerified } from "./webhook-refusals.ts";
import type { WebhookHandler, WebhookOutcome } from "./webhook-handler-types.ts";
import { webhookRequest } from "./webhook-request.ts";

/**
 * Handles a webhook that `webhookHmac` has verified, which must run before it: POST and JSON alone, then the envelope, then
 * its events. Answers 200 with an empty body when every event is done, and 503 otherwise, so that the service brings it back.
 * Throws a TypeError on a bad option, and unless `handler` is from `createWebhookHandler`.
 */
export function receiveWebhook(handler: WebhookHandler, options: WebhookEnvelopeOptions = {}): Middleware {
  const factory = "receiveWebhook";
  assertKnownOptions(factory, options, ["maxEvents"]);
  return chain(factory, [webhookRequest(), ...handleWebhook(factory, handler, options)]);
}

/** The middlewares of `factory` behind the verified body: the events, then the answer. */
export function handleWebhook(
  factory: string,
  handler: WebhookHandler,
  options: WebhookEnvelopeOptions,
): readonly Middleware[] {
  assertWebhookHandler(factory, handler);
  const maxEvents = resolveMaxEvents(factory, options);
  const events = guard("receiveWebhook", (req) => {
    const payload = verifiedPayload(req);
    if (payload === undefined) throw payloadNotVerified();
    const envelope = readWebhookEnvelope(payload.bytes, maxEvents);
    if (isPromiseLike(envelope)) return handleLater(handler, envelope);
    const outcome = handler.handle(envelope);
    return isPromiseLike(outcome) ? handled(outcome) : assertAcknowledged(outcome);
  });
  return [events, acknowledge];
}

async function handleLater(handler: WebhookHandler, pending: Promise<WebhookEnvelope>): Promise<void> {
  assertAcknowledged(await handler.handle(await pending));
}

const acknowledge: Middleware = (_req, res, next) => {
  // A middleware of the app with a time-out of its own may have answered in the meantime.
  if (res.headersSent) return;
  // 200 until somebody changed it: V8 pays for a property of its own that says the same.
  if (res.statusCode !== 200) res.statusCode = 200;
  try {
    res.end();
  } catch (error) {
    // What the app has hung on the response threw. Behind a promise Express would not see it, and the process would end.
    next(error);
  }
};

async function handled(outcome: PromiseLike<WebhookOutcome>): Promise<void> {
  assertAcknowledged(await outcome);
}

function assertAcknowledged(outcome: WebhookOutcome): void {
  if (!outcome.acknowledged) throw eventsNotDone(outcome);
}

function assertWebhookHandler(factory: string, handler: unknown): void {
  const methods: readonly (keyof WebhookHandler)[] = ["on", "onOther", "onAny", "handle"];
  if (
    typeof handler === "object" &&
    handler !== null &&
    methods.every((name) => typeof Reflect.get(handler, name) === "function")
  ) {
    return;
  }
  throw optionError(factory, "handler", "what createWebhookHandler() returned", handler);
}
