export { answerDigests, type AnswerDigestOptions } from "./answer-digests.ts";
export {
  createContentDigest,
  createReprDigest,
  hasVerifiedContentDigest,
  verifiedDigest,
  verifyByPolicy,
  verifyContentDigest,
  verifyReprDigest,
  wantContentDigest,
  type ContentDigestCode,
} from "./check.ts";
export { contentDigest, digestResponse } from "./middleware.ts";
