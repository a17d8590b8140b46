// For authors of checks of signatures, and of tools that explain them.
export {
  componentIdentifiers,
  parseByteSequenceDictionary,
  type ComponentIdentifier,
} from "./signature-base.ts";
export { parseDictionary } from "./structured-field.ts";
export { derivedComponents } from "./components.ts";
export { coveringComponents, coversQuery, isCovered } from "./coverage.ts";
export { loadEngine } from "./algorithms/ed25519.ts";
export { isVerificationKey } from "./verification-key.ts";
export { keyDocuments } from "./key-set.ts";
export { defaultParameters, endOf } from "./signature-parameters.ts";
export { receiptComponents } from "./sign.ts";
export { isSignatureOf, listSignatures, parseSignatures, pickSignature } from "./verify.ts";
export type { UnverifiedSignature } from "./verify.ts";
