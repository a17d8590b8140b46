export type { BareItem, Parameters } from "./field-scanner.ts";
export {
  componentText,
  parseByteSequenceDictionary,
  parseComponentIdentifier,
  parseSignatureInput,
  type ComponentIdentifier,
  type SignatureInput,
} from "./signature-fields.ts";
export {
  parseDictionary,
  serializeDictionary,
  type InnerList,
  type Item,
  type Member,
  type StructuredFieldType,
} from "./structured-field.ts";
export { derivedComponents, queryCovering, type MessageValues } from "./components.ts";
export type { FieldTypes } from "./field-types.ts";
export type { Message, RequestMessage, ResponseMessage } from "./message.ts";
export type { Jwk, SignatureAlgorithm, VerificationEngine } from "./algorithms/algorithm.ts";
export { signatureAlgorithms } from "./algorithms/registry.ts";
export type { SigningKeyInput } from "./algorithms/signing-key.ts";
export { jwkThumbprint } from "./jwk-thumbprint.ts";
export { loadEngine } from "./algorithms/ed25519.ts";
export { importVerificationKey, type VerificationKeyOptions } from "./key-import.ts";
export {
  isVerificationKey,
  type KeyContext,
  type KeyScope,
  type KeyValidity,
  type VerificationKey,
} from "./verification-key.ts";
export { importKeys, keyidOfFile, type ImportedKeys, type KeyFault, type KeysOptions } from "./key-set.ts";
export { MessageSignatureError, type MessageSignatureErrorCode } from "./message-signature-error.ts";
export { assertTimely, defaultParameters, endOf } from "./signature-parameters.ts";
export type { SignatureParameter, SignatureProfile, TagPolicy } from "./signature-profile.ts";
export type { PublicKeyInput } from "./public-key-input.ts";
export { receiptComponents } from "./receipt-components.ts";
export { assertComputable, createSignatureBase } from "./signature-base.ts";
export {
  sign,
  signAsync,
  withSignature,
  type SignAsyncOptions,
  type SignatureFields,
  type SignOptions,
} from "./sign.ts";
export { defaultComponents, type SignatureOptions } from "./signature-plan.ts";
export { createSigner, type LocalSigner, type Signer } from "./signer.ts";
export {
  answerAcceptSignature,
  createAcceptSignature,
  parseAcceptSignature,
  type AcceptSignatureOptions,
  type AnswerOptions,
} from "./accept-signature.ts";
export { verifySignatures } from "./verify-signatures.ts";
export {
  isSignatureOf,
  readSignature,
  verify,
  verifySignature,
  verifySignatureAsync,
  type ReceivedSignature,
  type VerifyOptions,
} from "./verify.ts";
