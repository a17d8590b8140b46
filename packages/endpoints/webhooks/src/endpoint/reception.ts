import {
  assertNoKeyClaimed,
  holderOf,
  Steps,
  type OptionOwner,
  type ReceivedRequest,
} from "@countersign/core";
import { addressAdmission, type IpAllowlistOptions } from "@countersign/ip-allowlist";
import { basicAuthVerifier, type VerifiedCredential } from "@countersign/webhook-basic-auth";
import { payloadVerifier, type VerifiedPayload } from "@countersign/webhook-hmac";
import { httpsAdmission, type HttpsOnlyOptions } from "./https-only.ts";
import { assertWebhookRequest, eventReceiver } from "./receive-webhook.ts";
import { factory, resolveOptions, type WebhookOptions } from "./webhook-endpoint-options.ts";

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
export interface FoundOfWebhook {
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
    factory: owner = factory,
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
