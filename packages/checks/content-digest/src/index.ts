export {
  answerDigests,
  type AnswerDigestOptions,
  type AnswerToDigest,
  type AskingRequest,
  type DigestField,
} from "./answer-digests.ts";
export type { ContentDigestCode } from "./codes.ts";
export {
  hasVerifiedContentDigest,
  verifiedDigest,
  verifyByPolicy,
  verifyContentDigest,
  verifyReprDigest,
} from "./check.ts";
export {
  createContentDigest,
  createReprDigest,
  preferredDigestAlgorithm,
  wantContentDigest,
  type ContentDigestPolicyOptions,
  type DigestAlgorithm,
  type DigestPolicy,
  type ReceivedDigests,
} from "./digest-fields.ts";
export { contentDigest, digestResponse } from "./middleware.ts";
export type { ContentDigestOptions } from "./options.ts";
