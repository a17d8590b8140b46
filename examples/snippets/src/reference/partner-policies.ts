import {
  httpSignatureVerify,
  memoryNonceStore,
  type Keys,
  type SignaturePolicy,
} from "@countersign/http-signature-verify";

/** `policies`: by keyid, each the same object at every request. */
export function verifyPartners(
  keys: Keys,
  policies: ReadonlyMap<string, SignaturePolicy>,
) {
  return httpSignatureVerify({
    keys,
    nonces: memoryNonceStore(),
    policy: ({ keyid }) => policies.get(keyid),
  });
}
