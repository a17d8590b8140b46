import { OptionError } from "@countersign/core";
import {
  option,
  optionError,
  readOptions,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/door";
import {
  explainAddress,
  explainBasicAuth,
  explainHmac,
  explainSignature,
  type ExplainHmacOptions,
  type ExplainSignatureOptions,
} from "@countersign/explain";
import type { HttpSignatureVerifyOptions } from "@countersign/http-signature-verify";
import type { IdempotencyStore } from "@countersign/idempotency";
import type { BasicAuthCredential, WebhookBasicAuthOptions } from "@countersign/webhook-basic-auth";
import type { WebhookHmacOptions } from "@countersign/webhook-hmac";

/** The options of `httpSignatureVerify`. */
type InspectedSignature = Omit<ExplainSignatureOptions, "signerBase"> &
  Partial<Pick<HttpSignatureVerifyOptions, "engine" | "limit" | "nonces" | "storeTimeoutMs" | "threadPool">>;

/** The options of `webhookHmac`, with secrets that are known. */
type InspectedHmac = Omit<WebhookHmacOptions, "secret" | "secrets"> &
  ({ readonly secret: string } | { readonly secrets: readonly string[] });

/** The options of `webhookBasicAuth`, with credentials that are known. */
type InspectedBasicAuth = Pick<WebhookBasicAuthOptions, "realm" | "status"> &
  (BasicAuthCredential | { readonly credentials: readonly BasicAuthCredential[] });

/** The options of `ipAllowlist`, and Express's setting `trust proxy`. */
type InspectedAddresses = Pick<Parameters<typeof explainAddress>[0], "allow" | "trustProxy">;

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
  addresses: option.optional(option.own(readAddresses)),
  stores: option.own(readStores, "none"),
  secrets: option.own(readSecrets, "none"),
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
  // Explanations read their options late; a bad one must be refused now.
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
  assertObject(value, by, name, "{ keys }");
  // An explanation claims no nonce and has a pace of its own.
  const left = without(value, ["engine", "limit", "nonces", "storeTimeoutMs", "threadPool"]);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- explainSignature reads them
  return left as unknown as ExplainSignatureOptions;
}

function readHmac(value: unknown, by: OptionOwner, name: string): ExplainHmacOptions {
  assertObject(value, by, name, "{ secret }");
  const { secret, secrets = secret === undefined ? undefined : [secret] } = value;
  const left = { ...without(value, ["limit", "secret", "timeoutMs"]), secrets };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- explainHmac reads them
  return left as unknown as ExplainHmacOptions;
}

function readBasicAuth(value: unknown, by: OptionOwner, name: string): readonly BasicAuthCredential[] {
  assertObject(value, by, name, "{ username, password }");
  const { username, password, credentials = [{ username, password }] } = value;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- explainBasicAuth reads them
  return credentials as readonly BasicAuthCredential[];
}

function readAddresses(value: unknown, by: OptionOwner, name: string): InspectedAddresses {
  assertObject(value, by, name, "{ allow }");
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- explainAddress reads them
  return value as unknown as InspectedAddresses;
}

function readStores(
  stores: unknown = {},
  by: OptionOwner,
  name: string,
): ReadonlyMap<string, IdempotencyStore> {
  assertObject(stores, by, name, "{ payouts: store }");
  for (const store of Object.values(stores)) {
    if (typeof Object(store).read !== "function")
      throw optionError(by, name, "idempotency stores by name", store);
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each has been looked at
  return new Map(Object.entries(stores as Readonly<Record<string, IdempotencyStore>>));
}

function readSecrets(secrets: unknown = [], by: OptionOwner, name: string): readonly string[] {
  if (Array.isArray(secrets) && secrets.every((secret) => typeof secret === "string")) return [...secrets];
  throw optionError(by, name, "a list of texts", secrets);
}

function assertObject(
  value: unknown,
  by: OptionOwner,
  name: string,
  example: string,
): asserts value is Readonly<Record<string, unknown>> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return;
  throw optionError(by, name, `an object such as ${example}`, value);
}

function without(
  value: Readonly<Record<string, unknown>>,
  names: readonly string[],
): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([name]) => !names.includes(name)));
}
