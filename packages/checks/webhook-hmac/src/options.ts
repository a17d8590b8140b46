import { createSecretKey, type KeyObject } from "node:crypto";
import { OptionError } from "@countersign/core";
import {
  limitRule,
  option,
  optionError,
  readOptions,
  readSecretText,
  type BuiltFact,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/internal";
import {
  readScheme,
  type ResolvedScheme,
  type SchemeName,
  type SecretEncoding,
  type SignatureScheme,
} from "./scheme.ts";

/** Returns the secrets for one request. A throw, an empty or an unusable list is answered with 503. */
export type SecretsFunction<Native> = (req: Native) => readonly string[] | Promise<readonly string[]>;

interface SingleSecret {
  readonly secret: string;
  readonly secrets?: undefined;
}

interface SeveralSecrets<Native> {
  /** Any of these admits, for rotation: not empty, none twice. Or a function that returns them. */
  readonly secrets: readonly string[] | SecretsFunction<Native>;
  readonly secret?: undefined;
}

interface SignatureOptions {
  /** A name of `signatureSchemes`, or such an object. Default `{ header: "X-Payload-Signature" }`: the body alone in base64. */
  readonly scheme?: SchemeName | SignatureScheme | undefined;
  /** How far a signature's time may be from now, either way, in seconds. Default 300. */
  readonly toleranceSeconds?: number | undefined;
  /** Returns the time in milliseconds since 1970. Default `Date.now`. */
  readonly clock?: (() => number) | undefined;
  /** The largest accepted body, in bytes or as "1mb", if this guard reads it first. Default "1mb". */
  readonly limit?: number | string | undefined;
  /** How long a secrets function may take, in milliseconds, before the answer is 503. Default 2,000. */
  readonly timeoutMs?: number | undefined;
  /** The status of a refusal, 400 to 499. Default 401. */
  readonly status?: number | undefined;
}

export type VerifyPayloadOptions = Omit<SignatureOptions, "limit" | "timeoutMs">;

/** Exactly one of `secret` and `secrets`. */
export type WebhookHmacOptions<Native> = SignatureOptions & (SingleSecret | SeveralSecrets<Native>);

export interface ResolvedHmacOptions<Native> extends ResolvedField {
  readonly keys: readonly KeyObject[] | SecretsFunction<Native>;
  readonly limitBytes: number;
  readonly timeoutMs: number;
}

export const fieldTable = {
  scheme: option.own(
    (value = { header: "X-Payload-Signature" }, owner, name) => readScheme(value, owner, name),
    '{ header: "X-Payload-Signature" }',
  ),
  toleranceSeconds: option.integer({ min: 1, max: 86_400, fallback: 300 }),
  clock: option.clock(() => Date.now(), "Date.now"),
  status: option.integer({ min: 400, max: 499, fallback: 401 }),
} satisfies OptionTable<VerifyPayloadOptions, unknown>;

export type ResolvedField = ReadOptions<typeof fieldTable>;

// The scheme decides what a secret may be.
const secretText = option.shown(option.optional(option.own((value) => value)), showSecrets);

export const table = {
  secret: secretText,
  secrets: secretText,
  ...fieldTable,
  limit: limitRule("1mb"),
  timeoutMs: option.integer({ min: 1, max: 60_000, fallback: 2000 }),
} satisfies OptionTable<WebhookHmacOptions<never>, unknown>;

const shortSecretBytes = 16;

function showSecrets(given: unknown, { scheme }: ResolvedField): BuiltFact {
  const isShort = (secret: unknown): boolean => {
    try {
      const { symmetricKeySize = 0 } = importSecret(secret, scheme, { owner: "", name: "" });
      return symmetricKeySize < shortSecretBytes;
    } catch {
      // It is refused where it is imported.
      return false;
    }
  };
  return { short: (Array.isArray(given) ? given : [given]).some(isShort) };
}

/** Throws an OptionError where options contradict each other. */
export function resolveField(
  owner: OptionOwner,
  { scheme, toleranceSeconds, clock, status }: ResolvedField,
  given: VerifyPayloadOptions,
): ResolvedField {
  const idle = (["toleranceSeconds", "clock"] as const).find((name) => given[name] !== undefined);
  if (scheme.timestamp === undefined && idle !== undefined) {
    const what = "has a meaning beside a scheme with a timestamp only";
    throw new OptionError(owner, { option: idle, what });
  }
  return { scheme, toleranceSeconds, clock, status };
}

/** Throws an OptionError, which shows nothing of a secret. */
export function resolveOptions<Native>(
  options: WebhookHmacOptions<Native>,
  owner: OptionOwner,
): ResolvedHmacOptions<Native> {
  const { limit: limitBytes, timeoutMs, ...read } = readOptions(owner, table, options);
  const field = resolveField(owner, read, options);
  const keys = resolveKeys(owner, options, field.scheme);
  if (typeof keys !== "function" && options.timeoutMs !== undefined) {
    const what = "has a meaning beside a secrets function only";
    throw new OptionError(owner, { option: "timeoutMs", what });
  }
  return { ...field, keys, limitBytes, timeoutMs };
}

/** Throws an OptionError for an empty list, and for a secret that is unusable or there twice. */
export function importSecrets(
  owner: OptionOwner,
  secrets: unknown,
  scheme: SecretForm,
): readonly KeyObject[] {
  if (!Array.isArray(secrets) || secrets.length === 0) {
    throw optionError(owner, "secrets", "a non-empty array of secrets, or a function", secrets);
  }
  // Array.from visits the holes of a sparse array too.
  const keys = Array.from(secrets, (secret: unknown, index) =>
    importSecret(secret, scheme, { owner, name: `secrets[${index}]` }),
  );
  if (keys.some((key, index) => keys.findIndex((other) => other.equals(key)) !== index)) {
    throw new OptionError(owner, { option: "secrets", what: "has one secret twice" });
  }
  return keys;
}

function resolveKeys<Native>(
  owner: OptionOwner,
  { secret, secrets }: WebhookHmacOptions<Native>,
  scheme: SecretForm,
): ResolvedHmacOptions<Native>["keys"] {
  if ((secret === undefined) === (secrets === undefined)) {
    const what =
      "give exactly one of secret and secrets; " +
      "an unset environment variable must not leave the endpoint open";
    throw new OptionError(owner, { what });
  }
  if (secret !== undefined) return [importSecret(secret, scheme, { owner, name: "secret" })];
  return typeof secrets === "function" ? secrets : importSecrets(owner, secrets, scheme);
}

type SecretForm = Pick<ResolvedScheme, "secretEncoding" | "secretPrefix">;

const expectations: Readonly<Record<SecretEncoding, string>> = {
  utf8: "a string that is not all zeros",
  base64: "base64 with padding of a key that is not all zeros",
  hex: "pairs of hexadecimal digits that are not all zeros",
};

/** The key of a secret without its prefix. Throws an OptionError, which holds nothing of it, if unfit, all zeros or misencoded. */
export function importSecret(
  secret: unknown,
  { secretEncoding: encoding, secretPrefix }: SecretForm,
  { owner, name }: { readonly owner: OptionOwner; readonly name: string },
): KeyObject {
  const text = readSecretText(secret, owner, name);
  const bare = text.startsWith(secretPrefix) ? text.slice(secretPrefix.length) : text;
  const bytes = bare === "" ? undefined : decode(bare, encoding);
  if (bytes === undefined && secretPrefix !== "" && bare.includes(secretPrefix)) {
    const what =
      `must have ${JSON.stringify(secretPrefix)} at its beginning alone, got one with characters before it; ` +
      "leave these out, and give several secrets as a list";
    throw new OptionError(owner, { option: name, what });
  }
  // RFC 2104 section 2 pads a key with zeros: of zeros alone it is the empty key.
  if (bytes === undefined || bytes.every((byte) => byte === 0)) {
    const around = bare.trim() === bare ? "" : " without white space around it";
    throw optionError(owner, name, expectations[encoding] + around, bare);
  }
  return createSecretKey(bytes);
}

function decode(secret: string, encoding: SecretEncoding): Buffer | undefined {
  const bytes = Buffer.from(secret, encoding);
  // Node skips what it cannot decode, and encodes a lone surrogate as another character.
  const decoded = bytes.toString(encoding);
  return decoded === (encoding === "hex" ? secret.toLowerCase() : secret) ? bytes : undefined;
}
