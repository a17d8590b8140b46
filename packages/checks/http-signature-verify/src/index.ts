export type { HttpSignatureCode } from "./codes.ts";
export { httpSignatureVerify } from "./middleware.ts";
export { assertVerifyOptions, type HttpSignatureVerifyOptions } from "./options.ts";
export {
  httpSignatureVerifier,
  recheckHttpSignature,
  unclaimedVerifier,
  verifiedSignature,
  verifyHttpSignature,
  type VerifiedSignature,
} from "./check.ts";
export {
  readKeys,
  type CachingKeyStore,
  type ImportingKeyStore,
  type KeyLookup,
  type Keys,
  type KeyStore,
} from "./key-store.ts";
export type { PolicyLookup, SignaturePolicy } from "./policy.ts";
export { cachedKeys, type KeySource } from "./cached-keys.ts";
export { directoryKeys } from "./directory-keys.ts";
export { jwksKeys } from "./jwks-keys.ts";
export type { LiveKeyStore } from "./live-keys.ts";
export { keyUse, type KeyUse, type KeyUseTable } from "./key-use.ts";
export { memoryNonceStore } from "./nonce-store.ts";
export { importVerificationKey, type VerificationKey } from "@countersign/http-message-signatures";
export { type NonceStore } from "@countersign/core";
