import { OptionError, quoteForLog, type GuardError, type ReceivedRequest } from "@countersign/core";
import {
  fieldLines,
  holderOf,
  isJsonMediaType,
  keyClaims,
  readOptions,
  Steps,
  workSlices,
  type OptionOwner,
} from "@countersign/core/internal";
import { addressAdmission, type IpAllowlistOptions } from "@countersign/ip-allowlist";
import { basicAuthVerifier, type VerifiedCredential } from "@countersign/webhook-basic-auth";
import { payloadVerifier, verifiedPayload, type VerifiedPayload } from "@countersign/webhook-hmac";
import { EnvelopeReading } from "../envelope/envelope.ts";
import { isAcknowledged } from "../events/event-dispatch.ts";
import type { WebhookHandler, WebhookOutcome } from "../events/webhook-handler-types.ts";
import { webhookRefusal, type WebhookCode } from "../refusals.ts";
import {
  factoryName,
  httpsFactory,
  httpsTable,
  resolveOptions,
  type HttpsOnlyOptions,
  type WebhookOptions,
} from "./webhook-endpoint-options.ts";

type AdapterCheck<Native> = (native: Native, request: ReceivedRequest) => void;

/** The part of an endpoint that its framework decides. `Native` is the request of the framework. */
export interface WebhookAdapter<Native> {
  /** The factory that TypeErrors of options name. Default `webhookEndpoint`. */
  readonly factory?: string | undefined;
  /** Checks the scheme. Default: by `request.scheme`. */
  readonly https?: ((options: HttpsOnlyOptions, owner: OptionOwner) => AdapterCheck<Native>) | undefined;
  /** Checks the client's address. Default: `request.clientAddress` has to be in the list. */
  readonly admission?:
    | ((addresses: IpAllowlistOptions, owner: OptionOwner) => AdapterCheck<Native>)
    | undefined;
  /** Shows each result to the app as soon as it is known. */
  readonly show?: ((native: Native, found: FoundOfWebhook) => void) | undefined;
}

interface FoundOfWebhook {
  readonly credential?: VerifiedCredential;
  readonly payload?: VerifiedPayload;
}

/** Receives one webhook, each verdict on `countersign:guard`. Resolves when every event is done; rejects with the refusal. */
export type ReceiveWebhook<Native> = (request: ReceivedRequest, native: Native) => Promise<void>;

/** The steps of a webhook for an adapter. Throws an OptionError on a bad option. */
export function webhookReception<Native extends object>(
  options: WebhookOptions<Native>,
  {
    factory: owner = factoryName,
    https = usualHttps,
    admission = usualAdmission,
    show = () => {},
  }: WebhookAdapter<Native> = {},
): ReceiveWebhook<Native> {
  const { addresses, ...read } = resolveOptions(options, owner);
  const admitScheme = https(read.https ?? {}, holderOf(owner, "https"));
  const admitAddress = addresses && admission(addresses, holderOf(owner, "addresses"));
  const verifyBasicAuth = basicAuthVerifier<Native>(read.basicAuth, holderOf(owner, "basicAuth"));
  const verifyPayload = payloadVerifier<Native>(read.hmac, holderOf(owner, "hmac"));
  const receiveEvents = eventReceiver(read.handler, read.maxEvents);

  return async (request, native) => {
    const steps = new Steps(native);
    try {
      steps.begin("httpsOnly");
      admitScheme(native, request);
      if (admitAddress !== undefined) {
        steps.begin("ipAllowlist");
        admitAddress(native, request);
      }
      steps.begin("webhookBasicAuth");
      keyClaims.assertNone("webhookBasicAuth", native);
      show(native, { credential: await verifyBasicAuth(request, native) });
      steps.begin("webhookRequest");
      assertWebhookRequest(request);
      steps.begin("webhookHmac");
      keyClaims.assertNone("webhookHmac", native);
      show(native, { payload: await verifyPayload(request, native) });
      steps.begin("receiveWebhook");
      await receiveEvents(request);
      steps.end();
    } catch (thrown) {
      throw steps.refused(thrown);
    }
  };
}

function usualHttps(options: HttpsOnlyOptions, owner: OptionOwner): AdapterCheck<object> {
  const admit = httpsAdmission(options, owner);
  return (_native, request) => admit(() => request.scheme);
}

function usualAdmission(addresses: IpAllowlistOptions, owner: OptionOwner): AdapterCheck<object> {
  const admit = addressAdmission(addresses, owner);
  return (_native, { clientAddress }) => admit(clientAddress);
}

/** The check of `httpsOnly` by the adapter's own `schemeOf`, called only where it decides. Throws an OptionError. */
export function httpsAdmission(
  options: HttpsOnlyOptions,
  owner: OptionOwner = httpsFactory,
): (schemeOf: () => ReceivedRequest["scheme"]) => void {
  const { dangerouslyAllowHttp, status } = readOptions(owner, httpsTable, options);
  if (dangerouslyAllowHttp && process.env["NODE_ENV"] === "production") {
    const what =
      "must not be true when NODE_ENV is production: the password would travel in clear; " +
      "serve HTTPS, or set the app's trust proxy setting to the address of the proxy that does";
    throw new OptionError(owner, { option: "dangerouslyAllowHttp", what });
  }
  return (schemeOf) => {
    if (!dangerouslyAllowHttp && schemeOf() !== "https") throw webhookRefusal("https-required", { status });
  };
}

/** Makes the last step: it handles the events of the verified payload, and rejects unless every one is done. */
export function eventReceiver(
  handler: WebhookHandler<unknown>,
  maxEvents: number,
): (subject: object) => Promise<void> {
  return async (subject) => {
    const payload = verifiedPayload(subject);
    // The configuration mistake of a chain without `webhookHmac`: anybody's events would be handled.
    if (payload === undefined) throw webhookRefusal("payload-not-verified");
    // As parseWebhookEnvelope, but yields to the event loop between two events.
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

/** Admits only POST with JSON (spec, "Webhook receiver"), before the body is read. */
export function assertWebhookRequest(request: ReceivedRequest): void {
  if (request.method !== "POST") throw webhookRefusal("method-not-allowed");
  if (!isJsonMediaType(fieldLines(request, "content-type"))) throw webhookRefusal("media-type-unsupported");
}

const namedEvents = 5;

/** The error that makes the service send the webhook again: `events-busy` when its events only run elsewhere. */
function eventsNotDone({ events }: WebhookOutcome): GuardError<WebhookCode> {
  const open = events.filter(({ outcome }) => !isAcknowledged(outcome));
  const busy = open.every(({ outcome }) => outcome === "busy");
  const named = open
    .slice(0, namedEvents)
    .map(({ event_id, outcome }) => `${quoteForLog(event_id)} ${outcome}`);
  const others = open.length - named.length;
  const more = others > 0 ? `, and ${others} more` : "";
  const message = `${open.length} of ${events.length} events are not done: ${named.join(", ")}${more}`;
  return webhookRefusal(busy ? "events-busy" : "events-failed", { message });
}
