import {
  assertKnownOptions,
  option,
  readOptions,
  type OptionOwner,
  type OptionTable,
} from "@countersign/core";
import type { GuardErrorsOptions, GuardRequest } from "@countersign/express";
import type { IpAllowlistOptions } from "@countersign/ip-allowlist";
import type { WebhookBasicAuthOptions } from "@countersign/webhook-basic-auth";
import type { WebhookHmacOptions } from "@countersign/webhook-hmac";
import { maxEventsRule } from "../envelope/envelope.ts";
import type { WebhookHandler } from "../events/webhook-handler-types.ts";
import type { HttpsOnlyOptions } from "./https-only.ts";
import { readHandler } from "./receive-webhook.ts";

/** The endpoint answers by `hide` alone. */
interface WithoutStatus {
  readonly status?: undefined;
}

/** What a webhook has to satisfy, at any door. `Native` is the request of the framework. */
export interface WebhookOptions<Native = GuardRequest> {
  /** The usernames and passwords: options of webhookBasicAuth. */
  readonly basicAuth: WebhookBasicAuthOptions<Native> & WithoutStatus;
  /** The signature secrets and how the signature is written: options of webhookHmac, `limit` for the body among them. */
  readonly hmac: WebhookHmacOptions<Native> & WithoutStatus;
  /** What `createWebhookHandler` made. */
  readonly handler: WebhookHandler;
  /** Options of httpsOnly. Default: https alone. */
  readonly https?: HttpsOnlyOptions | undefined;
  /** From where the service may call: options of ipAllowlist. Default: every address. */
  readonly addresses?: (IpAllowlistOptions & WithoutStatus) | undefined;
  /** The largest number of events in one webhook; beyond it 413 `events-too-many`, before any is handled. Default 1,000. */
  readonly maxEvents?: number | undefined;
}

/** Options of `webhookEndpoint`, the door to Express. */
export interface WebhookEndpointOptions extends WebhookOptions {
  /** Answer every rejection as the app's own 404 of an unknown route. Default true. */
  readonly hide?: boolean | undefined;
  /** Called once for each rejection, before the answer; for the log. Its own throw becomes a process warning. */
  readonly onReject?: GuardErrorsOptions["onReject"];
}

/** {@link WebhookOptions} as far as the endpoint reads them; what is nested is read by its own check. */
export interface ReadWebhookOptions<Native> {
  readonly basicAuth: WebhookBasicAuthOptions<Native>;
  readonly hmac: WebhookHmacOptions<Native>;
  readonly handler: WebhookHandler;
  readonly https: HttpsOnlyOptions;
  readonly addresses: IpAllowlistOptions | undefined;
  readonly maxEvents: number;
}

/** How the Express door answers. */
type AnswerOptions = Required<Pick<GuardErrorsOptions, "hide">> & Pick<GuardErrorsOptions, "onReject">;

/** The name in messages. */
export const factory = "webhookEndpoint";

const httpsRule = option.section<HttpsOnlyOptions>("{ dangerouslyAllowHttp: true }");

export const table: OptionTable<WebhookOptions<never>, ReadWebhookOptions<never>> = {
  basicAuth: option.section("{ username, password }", ["status"]),
  hmac: option.section("{ secret }", ["status"]),
  handler: option.own(readHandler),
  https: {
    byDefault: "https alone",
    read: (value = {}, owner, name) => httpsRule.read(value, owner, name),
  },
  addresses: option.optional(option.section('{ allow: ["192.0.2.10"] }', ["status"]), "every address"),
  maxEvents: maxEventsRule,
};

export const answersTable = {
  hide: option.boolean(true),
  onReject: option.optional(option.call<NonNullable<GuardErrorsOptions["onReject"]>>()),
} satisfies OptionTable<Omit<WebhookEndpointOptions, keyof WebhookOptions>, unknown>;

/** Reads the options of the steps. Throws an OptionError of `owner`. */
export function resolveOptions<Native>(
  options: WebhookOptions<Native>,
  owner: OptionOwner,
): ReadWebhookOptions<Native> {
  const read = readOptions(owner, table, options);
  const { basicAuth, hmac } = options;
  return { ...read, basicAuth, hmac };
}

/** Tells the options of the Express door from those of the steps. Throws an OptionError. */
export function resolveEndpointOptions(options: WebhookEndpointOptions): {
  readonly steps: WebhookOptions;
  readonly answers: AnswerOptions;
} {
  assertKnownOptions(factory, options, Object.keys({ ...table, ...answersTable }));
  const { hide, onReject, ...steps } = options;
  return { steps, answers: readOptions(factory, answersTable, { hide, onReject }) };
}
