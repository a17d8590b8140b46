import { chain, guard, isPromiseLike, optionError, type Middleware } from "@countersign/guard";
import { verifiedPayload } from "@countersign/webhook-hmac";
import { parseWebhookEnvelope } from "./envelope.ts";
import { eventsNotDone, payloadNotVerified } from "./webhook-refusals.ts";
import type { WebhookHandler, WebhookOutcome } from "./webhook-handler-types.ts";
import { webhookRequest } from "./webhook-request.ts";

/**
 * Handles a webhook that `webhookHmac` has verified, which must run before it: POST and JSON alone, then the envelope, then
 * its events. Answers 200 with an empty body when every event is done, and 503 otherwise, so that the service brings it back.
 * Throws a TypeError unless `handler` is from `createWebhookHandler`.
 */
export function receiveWebhook(handler: WebhookHandler): Middleware {
  return chain("receiveWebhook", [webhookRequest(), ...handleWebhook("receiveWebhook", handler)]);
}

/** The middlewares of `factory` behind the verified body: the events, then the answer. */
export function handleWebhook(factory: string, handler: WebhookHandler): readonly Middleware[] {
  assertWebhookHandler(factory, handler);
  const events = guard("receiveWebhook", (req) => {
    const payload = verifiedPayload(req);
    if (payload === undefined) throw payloadNotVerified();
    const outcome = handler.handle(parseWebhookEnvelope(payload.bytes));
    return isPromiseLike(outcome) ? handled(outcome) : assertAcknowledged(outcome);
  });
  return [events, acknowledge];
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
  const methods: readonly (keyof WebhookHandler)[] = ["on", "onAny", "handle"];
  if (
    typeof handler === "object" &&
    handler !== null &&
    methods.every((name) => typeof Reflect.get(handler, name) === "function")
  ) {
    return;
  }
  throw optionError(factory, "handler", "what createWebhookHandler() returned", handler);
}
