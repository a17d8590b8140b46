import type { KeyObject } from "node:crypto";
import {
  asBuffer,
  createRequestFact,
  fieldLines,
  GuardError,
  inTime,
  optionError,
  publishBuilt,
  readOptions,
  type BuiltFacts,
  type OptionOwner,
  type ReceivedRequest,
  type RequestFact,
} from "@countersign/core";
import { readBody } from "@countersign/raw-body";
import type { PayloadSignatureCode } from "./codes.ts";
import {
  fieldTable,
  importSecrets,
  resolveOptions,
  type ResolvedOptions,
  type SecretsFunction,
  type VerifyPayloadOptions,
  type WebhookHmacOptions,
} from "./options.ts";
import { matchSignature, parseSignature } from "./payload-signature.ts";

/** The body of a request whose signature was verified. */
export interface VerifiedPayload {
  readonly bytes: Buffer;
  /** The position of the secret in `secrets`, 0 for a single one. */
  readonly secretIndex: number;
}

const verified: RequestFact<VerifiedPayload> = createRequestFact();

/** The very bytes that the last check of this very request verified; undefined when none did. */
export function verifiedPayload(subject: object): VerifiedPayload | undefined {
  return verified.get(subject);
}

/**
 * Verifies the HMAC-SHA-256 of a payload: `bytes` as received, never parsed and serialised again, and `signature`, the value of the
 * field X-Payload-Signature. Each of `secrets` admits. Throws a GuardError with the option `status`, default 401:
 * `payload-signature-missing`, `-malformed` or `-wrong`; a TypeError on an unusable secret or option.
 */
export function verifyPayload(
  bytes: Uint8Array,
  signature: string | undefined,
  secrets: readonly string[],
  options: VerifyPayloadOptions = {},
): VerifiedPayload {
  const owner = "verifyPayload";
  const { secretEncoding, ...field } = readOptions(owner, fieldTable, options);
  if (typeof secrets === "function")
    throw optionError(owner, "secrets", "a non-empty array of secrets", secrets);
  const keys = importSecrets(owner, secrets, secretEncoding);
  const expected = parseField(signature === undefined ? [] : [signature], field);
  if (!(bytes instanceof Uint8Array)) {
    throw new TypeError("verifyPayload: bytes must be a Buffer or Uint8Array");
  }
  return matchPayload(asBuffer(bytes), expected, keys, field);
}

/**
 * Makes the check of a request's payload: the field, then the secrets, then the body. `native` goes to a secrets function, which
 * is answered with 503 when it fails. Rejects with a GuardError; throws an OptionError on a bad option: `owner` is who it says has it.
 */
export function payloadVerifier<Native>(
  options: WebhookHmacOptions<Native>,
  owner: OptionOwner = "payloadVerifier",
): (request: ReceivedRequest, native: Native) => Promise<VerifiedPayload> {
  const resolved = resolveOptions(options, owner);
  publishBuilt("webhookHmac", owner, () => factsOf(resolved));
  return async (request, native) => {
    // A second check of the same request must not live on the verdict of the first.
    verified.delete(request);
    // The field alone, so that a request without a usable signature is refused before its body is read.
    const signature = parseField(fieldLines(request, resolved.header), resolved);
    const { keys } = resolved;
    const known = typeof keys === "function" ? await askForKeys(keys, native, { ...resolved, owner }) : keys;
    const bytes = await readBody(request, resolved.limitBytes);
    const payload = matchPayload(bytes, signature, known, resolved);
    verified.set(request, payload);
    return payload;
  };
}

const shortSecretBytes = 16;

function factsOf<Native>({ keys, header }: ResolvedOptions<Native>): BuiltFacts {
  if (typeof keys === "function") return { header, secrets: null, short: false };
  const short = keys.some(({ symmetricKeySize = 0 }) => symmetricKeySize < shortSecretBytes);
  return { header, secrets: keys.length, short };
}

type FieldOptions = Pick<ResolvedOptions<unknown>, "header" | "signatureEncodings" | "status">;

/** The signature in base64. */
function parseField(lines: readonly string[], { header, signatureEncodings, status }: FieldOptions): string {
  const [line] = lines;
  if (line === undefined) throw refusal(status, "missing", `the request has no ${header} field`);
  const signature = lines.length === 1 ? parseSignature(line, signatureEncodings) : undefined;
  if (signature !== undefined) return signature;
  const message = `${header} is not exactly one HMAC-SHA-256 in ${signatureEncodings.join(" or ")}`;
  throw refusal(status, "malformed", message);
}

function matchPayload(
  bytes: Buffer,
  signature: string,
  keys: readonly KeyObject[],
  { header, status }: FieldOptions,
): VerifiedPayload {
  const secretIndex = matchSignature(signature, bytes, keys);
  if (secretIndex === -1) throw refusal(status, "wrong", `${header} is not the HMAC-SHA-256 of the body`);
  return { bytes, secretIndex };
}

/** The keys that a secrets function gives for a request. Rejects with a GuardError 503 when they are unusable. */
async function askForKeys<Native>(
  secrets: SecretsFunction<Native>,
  native: Native,
  {
    owner,
    secretEncoding,
    timeoutMs,
  }: Pick<ResolvedOptions<Native>, "secretEncoding" | "timeoutMs"> & { readonly owner: OptionOwner },
): Promise<readonly KeyObject[]> {
  const late = (): Error => new Error(`the secrets function did not answer within ${timeoutMs} ms`);
  try {
    return importSecrets(owner, await inTime(secrets(native), timeoutMs, late), secretEncoding);
  } catch (error) {
    throw unavailable(error);
  }
}

function refusal(
  status: number,
  reason: "missing" | "malformed" | "wrong",
  message: string,
): GuardError<PayloadSignatureCode> {
  return new GuardError<PayloadSignatureCode>({ status, code: `payload-signature-${reason}`, message });
}

function unavailable(cause: unknown): GuardError<PayloadSignatureCode> {
  return new GuardError<PayloadSignatureCode>({
    status: 503,
    code: "secrets-unavailable",
    message: "the secrets function gave no usable secrets",
    headers: { "Retry-After": "5" },
    cause,
  });
}
