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
  wantContentDigest,
  type DigestAlgorithm,
} from "./content-digest-field.ts";
export type { ReceivedDigests } from "./received-digests.ts";
export { preferredDigestAlgorithm } from "./want-digest.ts";
export { contentDigest } from "./middleware.ts";
export type { ContentDigestOptions, ContentDigestPolicyOptions, DigestPolicy } from "./options.ts";
