export type { HttpSignatureCode } from "./codes.ts";
export { cachedKeyStore, type CachedKeyStoreOptions, type KeySource } from "./cached-key-store.ts";
export type { ConfiguredKey, KeyLookup, Keys, KeyStore } from "./key-store.ts";
// What a nonce store of one's own implements; stores need no more of this than the types.
export type { NonceClaim, NonceStore } from "@countersign/core";
export { memoryNonceStore, type MemoryNonceStoreOptions } from "./nonce-store.ts";
export {
  httpSignatureVerifier,
  verifiedMessage,
  verifiedSignature,
  verifyHttpSignature,
  type VerifiedSignature,
  type VerifyHttpSignature,
} from "./check.ts";
export { httpSignatureVerify } from "./middleware.ts";
export type { HttpSignatureVerifyOptions } from "./options.ts";
export type { TagOption } from "./profile.ts";
export {
  importVerificationKey,
  type PublicKeyInput,
  type VerificationKey,
} from "@countersign/http-message-signatures";
