export type { BareItem, Parameters } from "./field-scanner.ts";
export {
  parseByteSequenceDictionary,
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
export { componentText, parseComponentIdentifier } from "./component-identifier.ts";
export { derivedComponents, queryCovering, type MessageValues } from "./components.ts";
export { assertComputable } from "./computable.ts";
export type { FieldTypes } from "./field-types.ts";
export type { Message, RequestMessage, ResponseMessage } from "./message.ts";
export type { SignatureAlgorithm, VerificationEngine } from "./algorithms/algorithm.ts";
export { signatureAlgorithms } from "./algorithms/registry.ts";
export type { SigningKeyInput } from "./algorithms/signing-key.ts";
export { jwkThumbprint } from "./jwk-thumbprint.ts";
export { loadEngine } from "./algorithms/ed25519.ts";
export {
  importVerificationKey,
  isVerificationKey,
  type VerificationKey,
  type VerificationKeyOptions,
} from "./verification-key.ts";
export { importKeys, keyidOfFile, type ImportedKeys, type KeyFault, type KeysOptions } from "./key-set.ts";
export type { KeyContext, KeyScope, KeyValidity } from "./key-validity.ts";
export { MessageSignatureError, type MessageSignatureErrorCode } from "./message-signature-error.ts";
export { assertTimely, endOf } from "./lifetime.ts";
export { readSignature, type ReceivedSignature } from "./received-signature.ts";
export {
  defaultParameters,
  type SignatureParameter,
  type SignatureProfile,
  type TagPolicy,
} from "./signature-profile.ts";
export type { PublicKeyInput } from "./public-key-input.ts";
export { receiptComponents } from "./receipt-components.ts";
export { createSignatureBase } from "./signature-base.ts";
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
export { verify, verifySignature, verifySignatureAsync, type VerifyOptions } from "./verify.ts";
