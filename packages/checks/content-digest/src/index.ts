export { answerDigests, type AnswerDigestOptions } from "./answer-digests.ts";
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
  type DigestPolicy,
} from "./digest-fields.ts";
export { contentDigest, digestResponse } from "./middleware.ts";
export type { ContentDigestOptions } from "./options.ts";
