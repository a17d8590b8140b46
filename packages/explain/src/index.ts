export type { Explanation } from "./explanation.ts";
export type { BaseDifference } from "./base-difference.ts";
export { capturedRequest, knownBody, type ExplainedRequest } from "./captured-request.ts";
export { explainAddress, type ExplainedAddress } from "./explain-address.ts";
export { explainBasicAuth } from "./explain-basic-auth.ts";
export { explainClaim, type ExplainedClaim } from "./explain-claim.ts";
export { explainDigest } from "./explain-digest.ts";
export { explainHmac, type ExplainHmacOptions } from "./explain-hmac.ts";
export { explainPayload, type SchemaFault } from "./explain-payload.ts";
export { explainSignature, type SignatureExplanation } from "./explain-signature.ts";
export type { ExplainSignatureOptions } from "./options.ts";
export {
  refusalExplainer,
  signatureExplainer,
  type RefusalExplainerOptions,
  type SignatureExplainer,
  type SignatureExplainerOptions,
} from "./signature-explainer.ts";
