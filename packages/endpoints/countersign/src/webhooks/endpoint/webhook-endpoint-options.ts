import {
  hasMethods,
  option,
  optionError,
  readOptions,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/internal";
import type { IpAllowlistOptions } from "@countersign/ip-allowlist";
import type { WebhookBasicAuthOptions } from "@countersign/webhook-basic-auth";
import type { WebhookHmacOptions } from "@countersign/webhook-hmac";
import { maxEventsRule } from "../envelope/envelope.ts";
import type { WebhookHandler } from "../events/webhook-handler-types.ts";

export interface HttpsOnlyOptions {
  /** Let plain HTTP pass, for local work. Default false; true throws when NODE_ENV is `production`. */
  readonly dangerouslyAllowHttp?: boolean | undefined;
  /** HTTP status of a refusal, 400 to 499. Default 403. */
  readonly status?: number | undefined;
}

/** The endpoint decides on the answers by `hide` alone. */
interface WithoutStatus {
  readonly status?: undefined;
}

export interface WebhookOptions<Native> {
  readonly basicAuth: WebhookBasicAuthOptions<Native> & WithoutStatus;
  /** The signature secrets and how the signature is written: options of webhookHmac, `limit` for the body among them. */
  readonly hmac: WebhookHmacOptions<Native> & WithoutStatus;
  readonly handler: WebhookHandler<unknown>;
  /** Options of httpsOnly. Default: https alone. */
  readonly https?: HttpsOnlyOptions | undefined;
  /** The addresses that may call: options of ipAllowlist. Default: every address. */
  readonly addresses?: (IpAllowlistOptions & WithoutStatus) | undefined;
  /** The largest number of events in one webhook; beyond it 413 `events-too-many`, before any is handled. Default 1,000. */
  readonly maxEvents?: number | undefined;
}

export const factoryName = "webhookEndpoint";

export const httpsFactory = "httpsOnly";

export const httpsTable: OptionTable<HttpsOnlyOptions> = {
  dangerouslyAllowHttp: option.shown(option.boolean(false)),
  status: option.integer({ min: 400, max: 499, fallback: 403 }),
};

export const table = {
  basicAuth: option.section("{ username, password }", ["status"]),
  hmac: option.section("{ secret }", ["status"]),
  handler: option.own(readHandler),
  https: option.optional(option.section<HttpsOnlyOptions>("{ dangerouslyAllowHttp: true }"), "https alone"),
  addresses: option.optional(
    option.section<IpAllowlistOptions>('{ allow: ["192.0.2.10"] }', ["status"]),
    "every address",
  ),
  maxEvents: maxEventsRule,
} satisfies OptionTable<WebhookOptions<never>, unknown>;

type ReadWebhookOptions<Native> = Omit<ReadOptions<typeof table>, "basicAuth" | "hmac"> &
  Pick<WebhookOptions<Native>, "basicAuth" | "hmac">;

/** Reads the options of the steps. Throws an OptionError of `owner`. */
export function resolveOptions<Native>(
  options: WebhookOptions<Native>,
  owner: OptionOwner,
): ReadWebhookOptions<Native> {
  const read = readOptions(owner, table, options);
  const { basicAuth, hmac } = options;
  return { ...read, basicAuth, hmac };
}

export function readHandler(handler: unknown, owner: OptionOwner, name: string): WebhookHandler<unknown> {
  if (hasMethods<WebhookHandler<unknown>>(handler, "on", "onOther", "onAny", "handle")) return handler;
  throw optionError(owner, name, "what createWebhookHandler() returned", handler);
}
