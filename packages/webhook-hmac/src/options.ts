import type { KeyObject } from "node:crypto";
import {
  limitRule,
  option,
  OptionError,
  optionError,
  readOptions,
  type Given,
  type OptionOwner,
  type OptionTable,
} from "@countersign/core";
import type { GuardRequest } from "@countersign/express";
import {
  importSecret,
  isSignatureEncoding,
  secretEncoding,
  type SecretEncoding,
  type SignatureEncoding,
} from "./payload-signature.ts";

/**
 * The secrets for one request, for example of one customer. `Native` is the request of the framework. A throw, an empty or an
 * unusable list is answered with 503.
 */
export type SecretsFunction<Native = GuardRequest> = (
  req: Native,
) => readonly string[] | Promise<readonly string[]>;

interface SingleSecret {
  /** The secret, not empty. */
  readonly secret: string;
  readonly secrets?: undefined;
}

interface SeveralSecrets<Native> {
  /** Several secrets, of which each admits, for rotation: not empty, none twice. Or a function that gives them. */
  readonly secrets: readonly string[] | SecretsFunction<Native>;
  readonly secret?: undefined;
}

interface SignatureOptions {
  /** The name of the field with the signature, none that has another use. Default `X-Payload-Signature`. */
  readonly header?: string | undefined;
  /** How each secret stands for the key's bytes. Default `utf8`. */
  readonly secretEncoding?: SecretEncoding | undefined;
  /** How the field may write the signature. Default `["base64"]`. */
  readonly signatureEncodings?: readonly SignatureEncoding[] | undefined;
  /** The largest accepted body, in bytes or as "1mb", where this guard is the first to read it. Default "1mb". */
  readonly limit?: number | string | undefined;
  /** How long a secrets function may take, in milliseconds, before the answer is 503. Default 2,000. */
  readonly timeoutMs?: number | undefined;
  /** The status of a refusal, 400 to 499. Default 401. */
  readonly status?: number | undefined;
}

/** Options of {@link verifyPayload}. */
export type VerifyPayloadOptions = Pick<
  SignatureOptions,
  "header" | "secretEncoding" | "signatureEncodings" | "status"
>;

/** Options of `webhookHmac`: exactly one of `secret` and `secrets`. */
export type WebhookHmacOptions<Native = GuardRequest> = SignatureOptions &
  (SingleSecret | SeveralSecrets<Native>);

/** Each option by itself: how a secret is read goes by others. */
interface CheckedOptions extends Omit<Given<SignatureOptions>, "limit"> {
  readonly secret: unknown;
  readonly secrets: unknown;
  readonly limit: number;
}

/** The options with defaults, checked; secrets imported. */
export interface ResolvedOptions<Native> extends Omit<Given<SignatureOptions>, "limit"> {
  readonly keys: readonly KeyObject[] | SecretsFunction<Native>;
  readonly limitBytes: number;
}

export const fieldTable: OptionTable<VerifyPayloadOptions> = {
  header: option.own(readHeader, '"X-Payload-Signature"'),
  secretEncoding,
  signatureEncodings: option.own(readSignatureEncodings, '["base64"]'),
  status: option.integer({ min: 400, max: 499, fallback: 401 }),
};

// What a secret may be, goes by secretEncoding.
const secretText = option.optional(option.own((value) => value));

export const table: OptionTable<WebhookHmacOptions<never>, CheckedOptions> = {
  secret: secretText,
  secrets: secretText,
  ...fieldTable,
  limit: limitRule("1mb"),
  timeoutMs: option.integer({ min: 1, max: 60_000, fallback: 2000 }),
};

/** Throws an OptionError, which shows nothing of a secret. */
export function resolveOptions<Native>(
  options: WebhookHmacOptions<Native>,
  owner: OptionOwner,
): ResolvedOptions<Native> {
  const {
    header,
    secretEncoding: encoding,
    signatureEncodings,
    limit: limitBytes,
    timeoutMs,
    status,
  } = readOptions(owner, table, options);
  const keys = resolveKeys(owner, options, encoding);
  if (typeof keys !== "function" && options.timeoutMs !== undefined) {
    const what = "has a meaning beside a secrets function only";
    throw new OptionError(owner, { option: "timeoutMs", what });
  }
  return { keys, header, secretEncoding: encoding, signatureEncodings, limitBytes, timeoutMs, status };
}

/** Imports a list of secrets. Throws an OptionError for an empty one, and for a secret that is unusable or there twice. */
export function importSecrets(
  owner: OptionOwner,
  secrets: unknown,
  encoding: SecretEncoding,
): readonly KeyObject[] {
  if (!Array.isArray(secrets) || secrets.length === 0) {
    throw optionError(owner, "secrets", "a non-empty array of secrets, or a function", secrets);
  }
  // Array.from visits the holes of a sparse array too.
  const keys = Array.from(secrets, (secret: unknown, index) =>
    importSecret(secret, encoding, { owner, name: `secrets[${index}]` }),
  );
  if (keys.some((key, index) => keys.findIndex((other) => other.equals(key)) !== index)) {
    throw new OptionError(owner, { option: "secrets", what: "has one secret twice" });
  }
  return keys;
}

function resolveKeys<Native>(
  owner: OptionOwner,
  { secret, secrets }: WebhookHmacOptions<Native>,
  encoding: SecretEncoding,
): ResolvedOptions<Native>["keys"] {
  if ((secret === undefined) === (secrets === undefined)) {
    const what =
      "give exactly one of secret and secrets; " +
      "an unset environment variable must not leave the endpoint open";
    throw new OptionError(owner, { what });
  }
  if (secret !== undefined) return [importSecret(secret, encoding, { owner, name: "secret" })];
  return typeof secrets === "function" ? secrets : importSecrets(owner, secrets, encoding);
}

// Fields whose value HTTP, or basic authentication beside this guard, reads in a way of its own: no request with a signature in
// one of them could pass, and the answer would not tell why.
const takenHeaders: ReadonlySet<string> = new Set([
  "authorization",
  "connection",
  "content-digest",
  "content-encoding",
  "content-length",
  "content-type",
  "cookie",
  "expect",
  "host",
  "keep-alive",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

// RFC 9110 section 5.6.2.
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

function readHeader(header: unknown = "X-Payload-Signature", owner: OptionOwner, name: string): string {
  if (typeof header !== "string" || !token.test(header)) {
    throw optionError(owner, name, "the name of a header field", header);
  }
  const field = header.toLowerCase();
  if (!takenHeaders.has(field)) return field;
  const expected = "the name of a header field without another use, such as X-Payload-Signature";
  throw optionError(owner, name, expected, header);
}

function readSignatureEncodings(
  encodings: unknown = ["base64"],
  owner: OptionOwner,
  name: string,
): readonly SignatureEncoding[] {
  if (
    Array.isArray(encodings) &&
    encodings.length > 0 &&
    encodings.every(isSignatureEncoding) &&
    new Set(encodings).size === encodings.length
  ) {
    return [...encodings];
  }
  throw optionError(owner, name, 'a non-empty array of "base64" and "hex", each once', encodings);
}
