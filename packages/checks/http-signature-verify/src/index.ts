export { cachedKeys, type CachedKeysOptions, type KeySource } from "./cached-keys.ts";
export { directoryKeys, type DirectoryKeysOptions } from "./directory-keys.ts";
export { jwksKeys, type JwksKeysOptions } from "./jwks-keys.ts";
export { readKeys, type KeyLookup, type KeyStore, type Keys } from "./key-store.ts";
export { keyUse, type KeyUse, type KeyUseOptions, type KeyUseTable } from "./key-use.ts";
export type { LiveKeyStore } from "./live-keys.ts";
// What a nonce store of one's own implements; stores need no more of this than the types.
export type { NonceStore } from "@countersign/core";
export { memoryNonceStore, type MemoryNonceStoreOptions } from "./nonce-store.ts";
export {
  httpSignatureVerifier,
  verifiedSignature,
  recheckHttpSignature,
  verifyHttpSignature,
  type VerifiedSignature,
} from "./check.ts";
export { httpSignatureVerify } from "./middleware.ts";
export { assertVerifyOptions, type HttpSignatureCode, type HttpSignatureVerifyOptions } from "./options.ts";
export { importVerificationKey, type VerificationKey } from "@countersign/http-message-signatures";
export { keyUseChannelName, type KeyUseEvent } from "@countersign/core";
