import { GuardError, OptionError, quoteForLog, type ReceivedRequest } from "@countersign/core";
import {
  assertNoKeyClaimed,
  fieldLines,
  holderOf,
  isJsonMediaType,
  readOptions,
  Steps,
  type OptionOwner,
} from "@countersign/core/door";
import { addressAdmission, type IpAllowlistOptions } from "@countersign/ip-allowlist";
import { basicAuthVerifier, type VerifiedCredential } from "@countersign/webhook-basic-auth";
import { payloadVerifier, verifiedPayload, type VerifiedPayload } from "@countersign/webhook-hmac";
import type { WebhookCode } from "../codes.ts";
import { EnvelopeReading } from "../envelope/envelope.ts";
import { isAcknowledged, workSlices } from "../events/event-dispatch.ts";
import type { EventResult, WebhookHandler, WebhookOutcome } from "../events/webhook-handler-types.ts";
import {
  factoryName,
  httpsFactory,
  httpsTable,
  resolveOptions,
  type HttpsOnlyOptions,
  type WebhookOptions,
} from "./webhook-endpoint-options.ts";

/** A check of a request that a door makes in a way of its own. */
type DoorCheck<Native> = (request: ReceivedRequest, native: Native) => void;

/** What a door does in a way of its own. `Native` is the request of its framework. */
export interface WebhookDoor<Native> {
  /** The name in the TypeErrors of options: that of the door's own factory. Default `webhookEndpoint`. */
  readonly factory?: string | undefined;
  /** Makes the check of the scheme. Default: by `request.scheme`. */
  readonly https?: ((options: HttpsOnlyOptions, owner: OptionOwner) => DoorCheck<Native>) | undefined;
  /** Makes the check of the client's address. Default: `request.clientAddress` has to be in the list. */
  readonly admission?: ((addresses: IpAllowlistOptions, owner: OptionOwner) => DoorCheck<Native>) | undefined;
  /** Shows the app what was found, as soon as it was. */
  readonly show?: ((native: Native, found: FoundOfWebhook) => void) | undefined;
}

/** What is found of a webhook, step by step. */
interface FoundOfWebhook {
  readonly credential?: VerifiedCredential;
  readonly payload?: VerifiedPayload;
}

/**
 * Receives one webhook, without a framework: scheme, address, credentials, method and media type, HMAC, envelope, events, one
 * after the other, each verdict on `countersign:guard`. Resolves when every event is done; rejects with the refusal.
 */
export type ReceiveWebhook<Native> = (request: ReceivedRequest, native: Native) => Promise<void>;

/** The steps of a webhook for a door. Throws an OptionError on a bad option. */
export function webhookReception<Native extends object>(
  options: WebhookOptions<Native>,
  {
    factory: owner = factoryName,
    https = usualHttps,
    admission = usualAdmission,
    show = showNothing,
  }: WebhookDoor<Native> = {},
): ReceiveWebhook<Native> {
  const { addresses, ...read } = resolveOptions(options, owner);
  const admitScheme = https(read.https, holderOf(owner, "https"));
  const admitAddress = addresses && admission(addresses, holderOf(owner, "addresses"));
  const verifyBasicAuth = basicAuthVerifier<Native>(read.basicAuth, holderOf(owner, "basicAuth"));
  const verifyPayload = payloadVerifier<Native>(read.hmac, holderOf(owner, "hmac"));
  const receiveEvents = eventReceiver(read.handler, read.maxEvents);

  return async (request, native) => {
    const steps = new Steps(native);
    try {
      steps.begin("httpsOnly");
      admitScheme(request, native);
      if (admitAddress !== undefined) {
        steps.begin("ipAllowlist");
        admitAddress(request, native);
      }
      steps.begin("webhookBasicAuth");
      assertNoKeyClaimed("webhookBasicAuth", native);
      show(native, { credential: await verifyBasicAuth(request, native) });
      steps.begin("webhookRequest");
      assertWebhookRequest(request);
      steps.begin("webhookHmac");
      assertNoKeyClaimed("webhookHmac", native);
      show(native, { payload: await verifyPayload(request, native) });
      steps.begin("receiveWebhook");
      await receiveEvents(request);
      steps.end();
    } catch (thrown) {
      throw steps.refused(thrown);
    }
  };
}

function usualHttps(options: HttpsOnlyOptions, owner: OptionOwner): (request: ReceivedRequest) => void {
  const admit = httpsAdmission(options, owner);
  return (request) => admit(() => request.scheme);
}

function usualAdmission(
  addresses: IpAllowlistOptions,
  owner: OptionOwner,
): (request: ReceivedRequest) => void {
  const admit = addressAdmission(addresses, owner);
  return ({ clientAddress }) => admit(clientAddress);
}

function showNothing(): void {}

/** The check of `httpsOnly`, for what a door says of the scheme, which is asked only where it decides. Throws an OptionError. */
export function httpsAdmission(
  options: HttpsOnlyOptions,
  owner: OptionOwner = httpsFactory,
): (schemeOf: () => ReceivedRequest["scheme"]) => void {
  const { dangerouslyAllowHttp, status } = readOptions(owner, httpsTable, options);
  if (dangerouslyAllowHttp) refuseHttpInProduction(owner);
  return (schemeOf) => {
    if (!dangerouslyAllowHttp && schemeOf() !== "https") throw httpsRequired(status);
  };
}

function refuseHttpInProduction(owner: OptionOwner): void {
  if (process.env["NODE_ENV"] !== "production") return;
  const what =
    "must not be true when NODE_ENV is production: the password would travel in clear; " +
    "serve HTTPS, or set the app's trust proxy setting to the address of the proxy that does";
  throw new OptionError(owner, { option: "dangerouslyAllowHttp", what });
}

function httpsRequired(status: number): GuardError<WebhookCode> {
  return new GuardError<WebhookCode>({
    status,
    code: "https-required",
    message:
      "the request did not come over HTTPS: its socket is not TLS, and no trusted proxy says https in one X-Forwarded-Proto line",
  });
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
