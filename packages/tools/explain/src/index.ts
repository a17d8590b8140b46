export type { Explanation } from "./explanation.ts";
export { capturedRequest, knownBody, type ExplainedRequest } from "./captured-request.ts";
export { explainAddress } from "./explain-address.ts";
export { explainBasicAuth } from "./explain-basic-auth.ts";
export { explainClaim } from "./explain-claim.ts";
export { explainDigest } from "./explain-digest.ts";
export { explainHmac, type ExplainHmacOptions } from "./explain-hmac.ts";
export { explainPayload } from "./explain-payload.ts";
export { explainSignature, type SignatureExplanation } from "./explain-signature.ts";
export type { ExplainSignatureOptions } from "./options.ts";
export { remedyOf } from "./remedies.ts";
export {
  refusalExplainer,
  signatureExplainer,
  type SignatureExplainer,
  type SignatureExplainerOptions,
} from "./signature-explainer.ts";
