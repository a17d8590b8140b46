export type { ContentDigestCode } from "./codes.ts";
export { hasVerifiedContentDigest, verifiedDigest, verifyByPolicy, verifyContentDigest } from "./check.ts";
export { createContentDigest, wantContentDigest, type DigestAlgorithm } from "./content-digest-field.ts";
export { contentDigest } from "./middleware.ts";
export type { ContentDigestOptions, ContentDigestPolicyOptions, DigestPolicy } from "./options.ts";
