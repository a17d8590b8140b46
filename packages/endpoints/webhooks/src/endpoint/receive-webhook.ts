import {
  fieldLines,
  GuardError,
  isJsonMediaType,
  optionError,
  quoteForLog,
  readOptions,
  type OptionOwner,
  type ReceivedRequest,
} from "@countersign/core";
import { chain, guard, receivedRequest, type Middleware } from "@countersign/express";
import { verifiedPayload } from "@countersign/webhook-hmac";
import type { WebhookCode } from "../codes.ts";
import { EnvelopeReading, envelopeTable, type WebhookEnvelopeOptions } from "../envelope/envelope.ts";
import { isAcknowledged, workSlices } from "../events/event-dispatch.ts";
import type { EventResult, WebhookHandler, WebhookOutcome } from "../events/webhook-handler-types.ts";

/**
 * Handles a webhook that `webhookHmac` has verified, which must run before it: POST and JSON alone, then the envelope, then
 * its events. Answers 200 with an empty body when every event is done, and 503 otherwise, so that the service brings it back.
 * Throws a TypeError on a bad option, and unless `handler` is from `createWebhookHandler`.
 */
export function receiveWebhook(handler: WebhookHandler, options: WebhookEnvelopeOptions = {}): Middleware {
  const factory = "receiveWebhook";
  const { maxEvents } = readOptions(factory, envelopeTable, options);
  const receive = eventReceiver(readHandler(handler, factory, "handler"), maxEvents);
  return chain(factory, [
    guard("webhookRequest", (req) => assertWebhookRequest(receivedRequest(req))),
    guard(factory, (req) => receive(req)),
    acknowledge,
  ]);
}

/** Makes the step behind the verified payload: it rejects unless every event is done. */
export function eventReceiver(
  handler: WebhookHandler,
  maxEvents: number,
): (subject: object) => Promise<void> {
  return async (subject) => {
    const payload = verifiedPayload(subject);
    if (payload === undefined) throw payloadNotVerified();
    // As parseWebhookEnvelope, but the event loop is given back between two events.
    if (workSlices.over) await workSlices.next();
    const reading = new EnvelopeReading(payload.bytes, maxEvents);
    do {
      // oxlint-disable-next-line no-await-in-loop -- see above
      while (workSlices.over) await workSlices.next();
    } while (reading.readEvent());
    const outcome = await handler.handle(reading.envelope);
    if (!outcome.acknowledged) throw eventsNotDone(outcome);
  };
}

/** The answer to a webhook of which every event is done. */
export const acknowledge: Middleware = (_req, res, next) => {
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

/** The rule of an option that is a handler. */
export function readHandler(handler: unknown, owner: OptionOwner, name: string): WebhookHandler {
  if (isWebhookHandler(handler)) return handler;
  throw optionError(owner, name, "what createWebhookHandler() returned", handler);
}

function isWebhookHandler(handler: unknown): handler is WebhookHandler {
  const methods: readonly (keyof WebhookHandler)[] = ["on", "onOther", "onAny", "handle"];
  return (
    typeof handler === "object" &&
    handler !== null &&
    methods.every((name) => typeof Reflect.get(handler, name) === "function")
  );
}

/** Admits POST with a body of JSON alone (spec, "Webhook receiver"), and refuses the rest before the body is read. */
export function assertWebhookRequest(request: ReceivedRequest): void {
  if (request.method !== "POST") throw methodNotAllowed();
  if (!isJsonMediaType(fieldLines(request, "content-type"))) throw mediaTypeUnsupported();
}

function methodNotAllowed(): GuardError<WebhookCode> {
  return new GuardError<WebhookCode>({
    status: 405,
    code: "method-not-allowed",
    message: "webhooks are sent with POST",
    // RFC 9110 section 15.5.6.
    headers: { Allow: "POST" },
  });
}

function mediaTypeUnsupported(): GuardError<WebhookCode> {
  return new GuardError<WebhookCode>({
    status: 415,
    code: "media-type-unsupported",
    message: "a webhook needs exactly one Content-Type, application/json, in UTF-8",
  });
}

const namedEvents = 5;

/** The configuration mistake of a chain without `webhookHmac`: without it anybody's events would be handled. */
function payloadNotVerified(): GuardError<WebhookCode> {
  return new GuardError<WebhookCode>({
    status: 500,
    code: "payload-not-verified",
    message: "receiveWebhook() found no verified payload: mount webhookHmac() before it",
  });
}

/** The error that makes the service send the webhook again: `events-busy` when its events only run elsewhere. */
function eventsNotDone({ events }: WebhookOutcome): GuardError<WebhookCode> {
  const open = events.filter(({ outcome }) => !isAcknowledged(outcome));
  const busy = open.every(({ outcome }) => outcome === "busy");
  const others = open.length - namedEvents;
  return new GuardError<WebhookCode>({
    status: 503,
    code: busy ? "events-busy" : "events-failed",
    message:
      `${open.length} of ${events.length} events are not done: ` +
      open.slice(0, namedEvents).map(describe).join(", ") +
      (others > 0 ? `, and ${others} more` : ""),
    headers: { "Retry-After": "5" },
  });
}

function describe({ event_id, outcome }: EventResult): string {
  return `${quoteForLog(event_id)} ${outcome}`;
}
