export { createPageToken, isSameAs } from "./access.ts";
export { createChangeStream } from "./change-stream.ts";
export { listen } from "./listen.ts";
export { masking } from "./masking.ts";
export { pageFiles } from "./page-files.ts";
export { readThrown, refuseOtherMethods, sendProblems, ServiceError } from "./problem.ts";
