import { OptionError } from "@countersign/core";
import {
  hasMethods,
  option,
  optionError,
  readOptions,
  readSecretTexts,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/internal";
import {
  explainAddress,
  explainBasicAuth,
  explainHmac,
  explainSignature,
  type ExplainHmacOptions,
  type ExplainSignatureOptions,
} from "@countersign/cli/explain";
import type { HttpSignatureVerifyOptions } from "@countersign/http-signature-verify";
import type { IdempotencyStore } from "@countersign/idempotency";
import type { BasicAuthCredential, WebhookBasicAuthOptions } from "@countersign/webhook-basic-auth";
import type { WebhookHmacOptions } from "@countersign/webhook-hmac";
import type { WorkStore } from "@countersign/idempotency/work";

type InspectedSignature = Omit<ExplainSignatureOptions, "signerBase"> &
  Partial<Pick<HttpSignatureVerifyOptions, "engine" | "limit" | "nonces" | "storeTimeoutMs" | "threadPool">>;

/** The options of `webhookHmac`, with secrets that are known. */
type InspectedHmac = Omit<WebhookHmacOptions, "secret" | "secrets"> &
  ({ readonly secret: string } | { readonly secrets: readonly string[] });

/** The options of `webhookBasicAuth`, with credentials that are known. */
type InspectedBasicAuth = Pick<WebhookBasicAuthOptions, "realm" | "status"> &
  (BasicAuthCredential | { readonly credentials: readonly BasicAuthCredential[] });

type InspectedAddresses = Pick<Parameters<typeof explainAddress>[0], "allow" | "ignorePort" | "trustProxy">;

/** A store's table of work, as it is looked at: `stores.work`. */
export type InspectedWork = Pick<WorkStore<never>, "engine" | "list" | "summaries">;

/** Options of {@link inspector}. No option decides about a request. */
export interface InspectorOptions {
  /** Default 0: a free one. */
  readonly port?: number | undefined;
  /** Default `127.0.0.1`. */
  readonly host?: "127.0.0.1" | "::1" | "localhost" | undefined;
  /** How many of the newest requests are kept. Default 500. */
  readonly kept?: number | undefined;
  /** Bytes of each body that are kept. Together with `kept` at most a GiB. Default 65,536. */
  readonly bodyLimitBytes?: number | undefined;
  /** Explains signatures: the options of the check. Default none: only the code of a refusal is shown. */
  readonly signature?: InspectedSignature | undefined;
  /** Explains the HMACs of webhooks: the options of the check. Its secrets are never shown. Default none. */
  readonly hmac?: InspectedHmac | undefined;
  /** Explains basic authentication: the options of the check. Its passwords are never shown. Default none. */
  readonly basicAuth?: InspectedBasicAuth | undefined;
  /** Explains addresses: the list of the check, and how proxies are trusted. Default none. */
  readonly addresses?: InspectedAddresses | undefined;
  /** Idempotency stores by name, to read a request's key. Default none. */
  readonly stores?: Readonly<Record<string, IdempotencyStore>> | undefined;
  /** Tables of work by name, to show what waits and what failed. Asked only while that view is open. Default none. */
  readonly work?: Readonly<Record<string, InspectedWork>> | undefined;
  /** Further texts never to show, such as keys of other services. Default none. */
  readonly secrets?: readonly string[] | undefined;
}

const owner = "inspector";
const maxKeptBytes = 1_073_741_824;

export const table = {
  port: option.integer({ min: 0, max: 65_535, fallback: 0 }),
  host: option.oneOf(["127.0.0.1", "::1", "localhost"], "127.0.0.1"),
  kept: option.integer({ min: 1, max: 10_000, fallback: 500 }),
  bodyLimitBytes: option.integer({ min: 1, max: 1_048_576, fallback: 65_536 }),
  signature: option.optional(option.own(readSignature)),
  hmac: option.optional(option.own(readHmac)),
  basicAuth: option.optional(option.own(readBasicAuth)),
  addresses: option.optional(option.section<InspectedAddresses>("{ allow }")),
  stores: option.own(
    namedStores<IdempotencyStore>("{ payouts: store }", "idempotency stores", ["read"]),
    "none",
  ),
  work: option.own(
    namedStores<InspectedWork>("{ main: stores.work }", "tables of work", ["summaries", "list"]),
    "none",
  ),
  secrets: option.own(
    (given: unknown = [], by: OptionOwner, name: string) => readSecretTexts(given, by, name),
    "none",
  ),
} satisfies OptionTable<InspectorOptions, unknown>;

export type ResolvedInspectorOptions = ReadOptions<typeof table>;

export type Explainers = Pick<ResolvedInspectorOptions, "signature" | "hmac" | "basicAuth" | "addresses">;

/** Throws an OptionError, which shows no secret; in production always. */
export async function resolveOptions(options: InspectorOptions): Promise<ResolvedInspectorOptions> {
  if (process.env["NODE_ENV"] === "production") {
    throw new OptionError(owner, {
      what: "it shows requests to whoever has the address; it is for development, and NODE_ENV is production",
    });
  }
  const read = readOptions(owner, table, options);
  if (read.kept * read.bodyLimitBytes > maxKeptBytes) {
    throw new OptionError(owner, { what: "kept times bodyLimitBytes must be at most 1 GiB" });
  }
  // Explanations read their options late; a bad one must be refused at the start.
  const { signature, hmac, basicAuth, addresses } = read;
  await refusing("signature", signature, (given) => explainSignature(nothing, given));
  await refusing("hmac", hmac, (given) => explainHmac(nothing, new Uint8Array(), given));
  await refusing("basicAuth", basicAuth, (given) => explainBasicAuth(nothing, given));
  await refusing("addresses", addresses, (given) => explainAddress({ ...nothing, ...given }));
  return read;
}

const nothing = { method: "GET", target: "/", rawHeaders: [], peer: undefined };

async function refusing<T>(
  name: string,
  given: T | undefined,
  explain: (given: T) => unknown,
): Promise<void> {
  if (given === undefined) return;
  try {
    await explain(given);
  } catch (error) {
    const what = error instanceof TypeError ? error.message : "cannot be used";
    throw new OptionError(owner, { option: name, what: `, ${what}`, cause: error });
  }
}

function readSignature(value: unknown, by: OptionOwner, name: string): ExplainSignatureOptions {
  // An explanation claims no nonce and has a pace of its own.
  const given = option.section<InspectedSignature>("{ keys }").read(value, by, name);
  const {
    engine: _engine,
    limit: _limit,
    nonces: _nonces,
    storeTimeoutMs: _ms,
    threadPool: _,
    ...left
  } = given;
  return left;
}

type AnyHmac = Omit<WebhookHmacOptions, "secret" | "secrets"> & { secret?: string } & ExplainHmacOptions;

function readHmac(value: unknown, by: OptionOwner, name: string): ExplainHmacOptions {
  const given = option.section<AnyHmac>("{ secret }").read(value, by, name);
  const { limit: _limit, timeoutMs: _ms, secret, secrets, ...left } = given;
  return { ...left, secrets: secrets === undefined && secret !== undefined ? [secret] : secrets };
}

type AnyBasicAuth = BasicAuthCredential & { readonly credentials?: readonly BasicAuthCredential[] };

function readBasicAuth(value: unknown, by: OptionOwner, name: string): readonly BasicAuthCredential[] {
  const given = option.section<AnyBasicAuth>("{ username, password }").read(value, by, name);
  const { username, password, credentials = [{ username, password }] } = given;
  return credentials;
}

function namedStores<Store extends object>(form: string, what: string, methods: readonly (keyof Store)[]) {
  return (value: unknown = {}, by: OptionOwner, name: string): ReadonlyMap<string, Store> => {
    const stores = option.section<Readonly<Record<string, Store>>>(form).read(value, by, name);
    for (const store of Object.values(stores)) {
      if (!hasMethods<Store>(store, ...methods)) throw optionError(by, name, `${what} by name`, store);
    }
    return new Map(Object.entries(stores));
  };
}
