import { assertKnownOptions, booleanOption, optionError, type GuardErrorsOptions } from "@countersign/guard";
import type { IpAllowlistOptions } from "@countersign/ip-allowlist";
import type { BasicAuthCredential, WebhookBasicAuthOptions } from "@countersign/webhook-basic-auth";
import type { WebhookHmacOptions } from "@countersign/webhook-hmac";
import type { WebhookEnvelopeOptions } from "./envelope.ts";
import type { HttpsOnlyOptions } from "./https-only.ts";
import type { WebhookHandler } from "./webhook-handler-types.ts";

/** Options of `webhookEndpoint`. */
export interface WebhookEndpointOptions {
  /** The usernames and passwords, of which each admits: several for rotation. Must not be empty. */
  readonly credentials: readonly BasicAuthCredential[];
  /** The signature secrets, of which each admits: several for rotation. Not empty. Or a function that gives them. */
  readonly secrets: NonNullable<WebhookHmacOptions["secrets"]>;
  /** What `createWebhookHandler` made. */
  readonly handler: WebhookHandler;
  /** Options of `httpsOnly`. Default: https alone. */
  readonly https?: HttpsOnlyOptions | undefined;
  /** The addresses and CIDR blocks that may call. Must not be empty. Default: every address. */
  readonly allowIps?: IpAllowlistOptions["allow"] | undefined;
  /** Answer every rejection as the app's own 404 of an unknown route. Default true. */
  readonly hide?: boolean | undefined;
  /** The largest accepted body, in bytes or as "1mb". Default "1mb". */
  readonly limit?: number | string | undefined;
  /** The largest number of events in one webhook; beyond it 413 `events-too-many`, before any is handled. Default 1,000. */
  readonly maxEvents?: number | undefined;
  /** The name of the field with the signature. Default `X-Payload-Signature`. */
  readonly header?: string | undefined;
  /** How each secret stands for the key's bytes. Default `utf8`. */
  readonly secretEncoding?: WebhookHmacOptions["secretEncoding"];
  /** How the field may write the signature. Default `["base64"]`. */
  readonly signatureEncodings?: WebhookHmacOptions["signatureEncodings"];
  /** The realm of a 401, which only an endpoint with `hide: false` sends. Default `webhook`. */
  readonly realm?: string | undefined;
  /** Called once for each rejection, before the answer; for the log. Its own throw becomes a process warning. */
  readonly onReject?: GuardErrorsOptions["onReject"];
}

/** The options of each part of the endpoint. What a middleware owns is checked by that middleware. */
export interface ResolvedOptions {
  readonly https: HttpsOnlyOptions;
  readonly addresses: IpAllowlistOptions | undefined;
  readonly basicAuth: WebhookBasicAuthOptions;
  readonly hmac: WebhookHmacOptions;
  readonly handler: WebhookHandler;
  readonly envelope: WebhookEnvelopeOptions;
  readonly answers: Required<Pick<GuardErrorsOptions, "hide">> & GuardErrorsOptions;
}

const factory = "webhookEndpoint";

const known: Readonly<Record<keyof WebhookEndpointOptions, true>> = {
  credentials: true,
  secrets: true,
  handler: true,
  https: true,
  allowIps: true,
  hide: true,
  limit: true,
  maxEvents: true,
  header: true,
  secretEncoding: true,
  signatureEncodings: true,
  realm: true,
  onReject: true,
};

/** Distributes the options over the parts. Throws a TypeError on a bad option of the endpoint itself. */
export function resolveOptions(options: WebhookEndpointOptions): ResolvedOptions {
  assertKnownOptions(factory, options, Object.keys(known));
  const {
    credentials,
    secrets,
    https = {},
    allowIps,
    header,
    limit,
    secretEncoding,
    signatureEncodings,
  } = options;
  // The middlewares take these in other forms too, which their own messages would offer.
  if (credentials === undefined) {
    throw optionError(factory, "credentials", "a non-empty array of { username, password }", credentials);
  }
  if (secrets === undefined) {
    throw optionError(factory, "secrets", "a non-empty array of secrets, or a function", secrets);
  }
  if (typeof https !== "object" || https === null) {
    throw optionError(factory, "https", "an object such as { dangerouslyAllowHttp: true }", https);
  }
  return {
    https,
    addresses: allowIps === undefined ? undefined : { allow: allowIps },
    basicAuth: { credentials, realm: options.realm },
    hmac: { secrets, header, limit, secretEncoding, signatureEncodings },
    handler: options.handler,
    envelope: { maxEvents: options.maxEvents },
    answers: { hide: booleanOption(factory, "hide", options.hide, true), onReject: options.onReject },
  };
}
