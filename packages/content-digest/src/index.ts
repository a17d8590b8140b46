export { contentDigest } from "./middleware.ts";
export type { ContentDigestOptions } from "./options.ts";
export { createContentDigest, wantContentDigest, type DigestAlgorithm } from "./digest.ts";
export { hasVerifiedContentDigest, verifiedDigest, verifyContentDigest } from "./verify-content-digest.ts";
