import {
  verifyHttpSignature,
  type HttpSignatureVerifyOptions,
} from "@countersign/http-signature-verify";
import { verifyPayload } from "@countersign/webhook-hmac";
import {
  parseWebhookEnvelope,
  type WebhookEnvelope,
} from "countersign/webhooks";

// #region signature
/**
 * In the place of a signature check written by hand: the parts of a request,
 * whatever has received it.
 */
export async function signerOf(
  {
    method,
    target,
    rawHeaders,
    bytes,
  }: { method: string; target: string; rawHeaders: string[]; bytes: Buffer },
  policy: HttpSignatureVerifyOptions,
): Promise<string> {
  const request = {
    method,
    target,
    rawHeaders,
    scheme: "https",
    clientAddress: undefined,
  } as const;
  // Rejects with a GuardError: form, coverage, time, key, Ed25519, digest,
  // nonce.
  const { keyid } = await verifyHttpSignature(
    { ...request, body: () => Promise.resolve(bytes) },
    policy,
  );
  return keyid;
}
// #endregion signature

// #region payload
/**
 * In the place of an HMAC check written by hand: bytes and the field's value
 * in, a parsed webhook out.
 */
export function webhookOf(
  bytes: Buffer,
  signature: string | undefined,
  secrets: readonly string[],
): WebhookEnvelope {
  // Throws a GuardError unless one of the secrets fits, compared in constant
  // time.
  return parseWebhookEnvelope(verifyPayload(bytes, signature, secrets).bytes);
}
// #endregion payload
