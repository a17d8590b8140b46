export { parseByteSequenceDictionary } from "./byte-sequence-dictionary.ts";
export { derivedComponents, queryCovering } from "./components.ts";
export type { VerificationEngine } from "./ed25519.ts";
export type { BareItem, Parameters } from "./field-scanner.ts";
export { MessageSignatureError, type MessageSignatureErrorCode } from "./message-signature-error.ts";
export {
  assertTimely,
  readSignature,
  type ReceivedSignature,
  type SignatureProfile,
  type TagPolicy,
} from "./received-signature.ts";
export type { PublicKeyInput } from "./public-key-input.ts";
export type { RequestMessage } from "./request-message.ts";
export type { ComponentIdentifier } from "./serialize.ts";
export { defaultComponents, sign, type SignatureFields, type SignOptions } from "./sign.ts";
export { createSignatureBase } from "./signature-base.ts";
export { parseSignatureInput, type SignatureInput } from "./signature-input.ts";
export {
  importVerificationKey,
  isVerificationKey,
  type VerificationKey,
  type VerificationKeyOptions,
} from "./verification-key.ts";
export { verify, verifySignature, verifySignatureAsync, type VerifyOptions } from "./verify.ts";
