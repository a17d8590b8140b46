import type { KeyObject } from "node:crypto";
import { validateHeaderName } from "node:http";
import { assertKnownOptions, integerOption, optionError, type GuardRequest } from "@countersign/guard";
import { resolveLimitBytes } from "@countersign/raw-body";
import { importSecret, isSecretEncoding, type SecretEncoding } from "./secret.ts";
import { isSignatureEncoding, type SignatureEncoding } from "./signature-field.ts";

/** The secrets for one request, for example of one customer. A throw, an empty or an unusable list is answered with 503. */
export type SecretsFunction = (req: GuardRequest) => readonly string[] | Promise<readonly string[]>;

interface SingleSecret {
  /** The secret, not empty. */
  readonly secret: string;
  readonly secrets?: undefined;
}

interface SeveralSecrets {
  /** Several secrets, of which each admits, for rotation: not empty, none twice. Or a function that gives them. */
  readonly secrets: readonly string[] | SecretsFunction;
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

/** Options of `webhookHmac`: exactly one of `secret` and `secrets`. */
export type WebhookHmacOptions = SignatureOptions & (SingleSecret | SeveralSecrets);

/** The options with defaults, checked; secrets imported. */
export interface ResolvedOptions {
  readonly keys: readonly KeyObject[] | SecretsFunction;
  /** In lower case. */
  readonly header: string;
  readonly secretEncoding: SecretEncoding;
  readonly signatureEncodings: readonly SignatureEncoding[];
  readonly limitBytes: number;
  readonly timeoutMs: number;
  readonly status: number;
}

const factory = "webhookHmac";
const known = [
  "secret",
  "secrets",
  "header",
  "secretEncoding",
  "signatureEncodings",
  "limit",
  "timeoutMs",
  "status",
];

/** Throws a TypeError that names the option, and shows nothing of a secret. */
export function resolveOptions(options: WebhookHmacOptions): ResolvedOptions {
  assertKnownOptions(factory, options, known);
  const { secretEncoding = "utf8", limit = "1mb", timeoutMs } = options;
  if (!isSecretEncoding(secretEncoding)) {
    throw optionError(factory, "secretEncoding", '"utf8", "base64" or "hex"', secretEncoding);
  }
  const keys = resolveKeys(options, secretEncoding);
  if (typeof keys !== "function" && timeoutMs !== undefined) {
    throw new TypeError(`${factory}: option timeoutMs has a meaning beside a secrets function only`);
  }
  return {
    keys,
    header: resolveHeader(options.header),
    secretEncoding,
    signatureEncodings: resolveSignatureEncodings(options.signatureEncodings),
    limitBytes: resolveLimitBytes(factory, limit),
    timeoutMs: integerOption(factory, "timeoutMs", timeoutMs, { min: 1, max: 60_000, fallback: 2000 }),
    status: integerOption(factory, "status", options.status, { min: 400, max: 499, fallback: 401 }),
  };
}

/** Imports a list of secrets. Throws a TypeError for an empty one, and for a secret that is unusable or there twice. */
export function importSecrets(secrets: unknown, encoding: SecretEncoding): readonly KeyObject[] {
  if (!Array.isArray(secrets) || secrets.length === 0) {
    throw optionError(factory, "secrets", "a non-empty array of secrets, or a function", secrets);
  }
  // Array.from visits the holes of a sparse array too.
  const keys = Array.from(secrets, (secret: unknown, index) =>
    importSecret(secret, encoding, { factory, option: `secrets[${index}]` }),
  );
  if (keys.some((key, index) => keys.findIndex((other) => other.equals(key)) !== index)) {
    throw new TypeError(`${factory}: option secrets has one secret twice`);
  }
  return keys;
}

function resolveKeys(options: WebhookHmacOptions, encoding: SecretEncoding): ResolvedOptions["keys"] {
  const { secret, secrets } = options;
  if ((secret === undefined) === (secrets === undefined)) {
    throw new TypeError(
      `${factory}: give exactly one of secret and secrets; ` +
        "an unset environment variable must not leave the endpoint open",
    );
  }
  if (secret !== undefined) return [importSecret(secret, encoding, { factory, option: "secret" })];
  return typeof secrets === "function" ? secrets : importSecrets(secrets, encoding);
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

function resolveHeader(header = "X-Payload-Signature"): string {
  try {
    validateHeaderName(header);
  } catch {
    throw optionError(factory, "header", "the name of a header field", header);
  }
  const name = header.toLowerCase();
  if (!takenHeaders.has(name)) return name;
  const expected = "the name of a header field without another use, such as X-Payload-Signature";
  throw optionError(factory, "header", expected, header);
}

function resolveSignatureEncodings(
  encodings: WebhookHmacOptions["signatureEncodings"] = ["base64"],
): readonly SignatureEncoding[] {
  if (
    !Array.isArray(encodings) ||
    encodings.length === 0 ||
    !encodings.every(isSignatureEncoding) ||
    new Set(encodings).size !== encodings.length
  ) {
    const expected = 'a non-empty array of "base64" and "hex", each once';
    throw optionError(factory, "signatureEncodings", expected, encodings);
  }
  return [...encodings];
}
