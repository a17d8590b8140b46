export { createPageToken, isSameAs, pageUrlOf, requirePageToken } from "./access.ts";
export { createChangeStream, type ChangeStream } from "./change-stream.ts";
export { listen, type Listening } from "./listen.ts";
export { marginBytes, masked, maskerOf, type Masker } from "./masking.ts";
export { pageFiles } from "./page-files.ts";
export {
  codeOf,
  messageOf,
  refuseOtherMethods,
  refuseUnknownPath,
  sendProblem,
  ServiceError,
  serviceStatuses,
  statusOfThrown,
  type ServiceErrorCode,
} from "./problem.ts";
