export { cachedKeyStore, type CachedKeyStoreOptions, type KeySource } from "./cached-key-store.ts";
export type { ConfiguredKey, KeyLookup, Keys, KeyStore } from "./key-store.ts";
export { memoryNonceStore, type MemoryNonceStoreOptions } from "./memory-nonce-store.ts";
export { httpSignatureVerify, verifiedSignature, type VerifiedSignature } from "./middleware.ts";
export type { NonceClaim, NonceStore } from "./nonce-store.ts";
export type { HttpSignatureVerifyOptions } from "./options.ts";
export type { TagOption } from "./profile.ts";
export {
  importVerificationKey,
  type PublicKeyInput,
  type VerificationKey,
} from "@countersign/http-message-signatures";
