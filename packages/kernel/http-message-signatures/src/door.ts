// What checks of signatures and tools that explain them are made with: for whoever writes one.
export {
  componentText,
  parseByteSequenceDictionary,
  parseComponentIdentifier,
  type ComponentIdentifier,
} from "./signature-base.ts";
export { parseDictionary, type Member, type StructuredFieldType } from "./structured-field.ts";
export { derivedComponents, queryCovering } from "./components.ts";
export type { FieldTypes } from "./message.ts";
export type { VerificationEngine } from "./algorithms/algorithm.ts";
export { loadEngine } from "./algorithms/ed25519.ts";
export { isVerificationKey } from "./verification-key.ts";
export { keyidOfFile } from "./key-set.ts";
export { defaultParameters, endOf } from "./signature-parameters.ts";
export type { SignatureParameter, TagPolicy } from "./signature-parameters.ts";
export { receiptComponents } from "./sign.ts";
export { assertComputable } from "./signature-base.ts";
export { isSignatureOf } from "./verify.ts";
