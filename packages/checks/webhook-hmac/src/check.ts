import type { KeyObject } from "node:crypto";
import { createRequestFact, GuardError, type ReceivedRequest, type RequestFact } from "@countersign/core";
import {
  asBuffer,
  askApp,
  fieldLines,
  optionError,
  readOptions,
  unanswered,
  type OptionOwner,
} from "@countersign/core/internal";
import { readBody } from "@countersign/raw-body";
import {
  fieldTable,
  importSecrets,
  resolveField,
  resolveOptions,
  type ResolvedField,
  type ResolvedHmacOptions,
  type SecretsFunction,
  type VerifyPayloadOptions,
  type WebhookHmacOptions,
} from "./options.ts";
import { linesOf, type PayloadHeaders } from "./payload-headers.ts";
import {
  assertBytes,
  assertFresh,
  contentOf,
  matchSignature,
  readClaim,
  type Lines,
  type PayloadSignatureCode,
  type SignatureClaim,
} from "./payload-signature.ts";

export interface VerifiedPayload {
  readonly bytes: Buffer;
  /** The position of the secret in `secrets`, 0 for a single one. */
  readonly secretIndex: number;
  /** When it was signed, in seconds since 1970. Absent where the scheme has no time. */
  readonly timestampSeconds?: number | undefined;
  /** The same in each delivery of a message. Absent where the scheme has none. */
  readonly id?: string | undefined;
}

const verified: RequestFact<VerifiedPayload> = createRequestFact();

/** The very bytes that the last check of this very request verified; undefined when none did. */
export function verifiedPayload(subject: object): VerifiedPayload | undefined {
  return verified.get(subject);
}

/**
 * Verifies a payload's HMAC. `bytes` must be as received, never serialised again; `header` is the value of the signature's field, or all
 * fields. Any of `secrets` admits. Throws a GuardError (`payload-…`) with `status`, default 401; a TypeError on a bad argument.
 */
export function verifyPayload(
  bytes: Uint8Array,
  header: string | PayloadHeaders | undefined,
  secrets: readonly string[],
  options: VerifyPayloadOptions = {},
): VerifiedPayload {
  const owner = "verifyPayload";
  const field = resolveField(owner, readOptions(owner, fieldTable, options), options);
  if (typeof secrets === "function")
    throw optionError(owner, "secrets", "a non-empty array of secrets", secrets);
  const keys = importSecrets(owner, secrets, field.scheme);
  assertBytes(owner, bytes);
  const claim = readFreshClaim(linesOf(header, field.scheme), field);
  return matchPayload({ bytes: asBuffer(bytes), claim, keys }, field);
}

/** Makes the check: fields, secrets, body. Rejects with a GuardError, 503 if `secrets` fails. Throws an OptionError for `owner`. */
export function payloadVerifier<Native>(
  options: WebhookHmacOptions<Native>,
  owner: OptionOwner = "payloadVerifier",
): (request: ReceivedRequest, native: Native) => Promise<VerifiedPayload> {
  const resolved = resolveOptions(options, owner);
  return async (request, native) => {
    // A second check of the same request must not live on the verdict of the first.
    verified.delete(request);
    // First, so that a request without a usable signature is refused before its body is read.
    const claim = readFreshClaim((name) => fieldLines(request, name), resolved);
    const known =
      typeof resolved.keys === "function"
        ? await askForKeys(resolved.keys, native, { ...resolved, owner })
        : resolved.keys;
    const bytes = await readBody(request, resolved.limitBytes);
    const payload = matchPayload({ bytes, claim, keys: known }, resolved);
    // Again: the signature may have expired while the body arrived.
    assertFresh(claim, resolved);
    verified.set(request, payload);
    return payload;
  };
}

function readFreshClaim(lines: Lines, field: ResolvedField): SignatureClaim {
  const claim = readClaim(lines, field.scheme, field.status);
  assertFresh(claim, field);
  return claim;
}

function matchPayload(
  {
    bytes,
    claim,
    keys,
  }: { readonly bytes: Buffer; readonly claim: SignatureClaim; readonly keys: readonly KeyObject[] },
  field: ResolvedField,
): VerifiedPayload {
  const { signatures, timestamp, id } = claim;
  const { algorithm, signed, header } = field.scheme;
  const secretIndex = matchSignature(signatures, contentOf(bytes, claim, signed), { keys, algorithm });
  if (secretIndex === -1) {
    throw new GuardError<PayloadSignatureCode>({
      status: field.status,
      code: "payload-signature-wrong",
      message: `${header.written} is not the HMAC-${algorithm === "sha256" ? "SHA-256" : "SHA-512"} of what was received`,
    });
  }
  const payload = { bytes, secretIndex };
  if (timestamp === undefined && id === undefined) return payload;
  return {
    ...payload,
    ...(timestamp !== undefined && { timestampSeconds: timestamp.seconds }),
    ...(id !== undefined && { id }),
  };
}

/** Rejects with a GuardError (503) when the secrets are unusable. */
async function askForKeys<Native>(
  secrets: SecretsFunction<Native>,
  native: Native,
  {
    owner,
    scheme,
    timeoutMs,
  }: Pick<ResolvedHmacOptions<Native>, "scheme" | "timeoutMs"> & { readonly owner: OptionOwner },
): Promise<readonly KeyObject[]> {
  const asked = { name: "the secrets function", timeoutMs, failure: secretsUnavailable };
  return await askApp(asked, async () => importSecrets(owner, await secrets(native), scheme));
}

function secretsUnavailable(cause: unknown): GuardError<PayloadSignatureCode> {
  const message = "the secrets function gave no usable secrets";
  return new GuardError<PayloadSignatureCode>(unanswered("secrets-unavailable", message, cause));
}
