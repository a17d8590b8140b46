export {
  parseByteSequenceDictionary,
  parseSignatureInput,
  type BareItem,
  type ComponentIdentifier,
  type Parameters,
  type SignatureInput,
} from "./field-scanner.ts";
export { derivedComponents, queryCovering, type RequestMessage } from "./components.ts";
export type { SignatureAlgorithm, VerificationEngine } from "./algorithms/algorithm.ts";
export {
  importVerificationKey,
  isVerificationKey,
  type VerificationKey,
  type VerificationKeyOptions,
} from "./verification-key.ts";
export { MessageSignatureError, type MessageSignatureErrorCode } from "./message-signature-error.ts";
export {
  assertTimely,
  readSignature,
  type ReceivedSignature,
  type SignatureProfile,
  type TagPolicy,
} from "./received-signature.ts";
export type { PublicKeyInput } from "./public-key-input.ts";
export { createSignatureBase } from "./signature-base.ts";
export { defaultComponents, sign, type SignatureFields, type SignOptions } from "./sign.ts";
export { verify, verifySignature, verifySignatureAsync, type VerifyOptions } from "./verify.ts";
