export { createPageToken, isSameAs, pageUrlOf, requireLoopbackHost, requirePageToken } from "./access.ts";
export { createChangeStream, type ChangeStream, type ChangeStreamInit } from "./change-stream.ts";
export { listen, type Listening } from "./listen.ts";
export { marginBytes, masked, maskerOf, type Masker, type Secrets } from "./masking.ts";
export { pageFiles } from "./page-files.ts";
export {
  refuseOtherMethods,
  refuseUnknownPath,
  sendProblem,
  statusOfThrown,
  type ProblemInit,
} from "./problem.ts";
export { ServiceError, serviceError, serviceStatuses, type ServiceErrorCode } from "./service-error.ts";
export { codeOf, messageOf } from "./thrown.ts";
