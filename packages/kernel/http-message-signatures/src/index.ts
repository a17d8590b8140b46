export { parseSignatureInput, type SignatureInput } from "./signature-base.ts";
export type { RequestMessage, ResponseMessage } from "./message.ts";
export type { SignatureAlgorithm } from "./algorithms/algorithm.ts";
export { signatureAlgorithms } from "./algorithms/registry.ts";
export { jwkThumbprint } from "./key-set.ts";
export { importVerificationKey, type VerificationKeyOptions } from "./key-import.ts";
export { type KeyValidity, type VerificationKey } from "./verification-key.ts";
export { importKeys, type ImportedKeys } from "./key-set.ts";
export { MessageSignatureError, type MessageSignatureErrorCode } from "./message-signature-error.ts";
export { assertTimely } from "./signature-parameters.ts";
export type { SignatureProfile } from "./signature-parameters.ts";
export type { PublicKeyInput } from "./public-key-input.ts";
export { createSignatureBase } from "./signature-base.ts";
export { sign, signAsync, withSignature, type SignatureFields, type SignOptions } from "./sign.ts";
export { defaultComponents } from "./sign.ts";
export { createSigner, type Signer } from "./signer.ts";
export {
  answerAcceptSignature,
  createAcceptSignature,
  parseAcceptSignature,
  type AcceptSignatureOptions,
} from "./accept-signature.ts";
export { verifySignatures } from "./verify.ts";
export {
  readSignature,
  verify,
  verifySignature,
  verifySignatureAsync,
  type ReceivedSignature,
  type VerifyOptions,
} from "./verify.ts";
export type { LocalSigner } from "./signer.ts";
