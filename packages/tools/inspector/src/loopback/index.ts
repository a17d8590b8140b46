export { createPageToken, isSameAs, pageUrlOf, requirePageToken } from "./access.ts";
export { createChangeStream, type ChangeStream } from "./change-stream.ts";
export { listen, type Listening } from "./listen.ts";
export { marginBytes, masked, maskerOf, type Masker } from "./masking.ts";
export { pageFiles } from "./page-files.ts";
export { refuseOtherMethods, refuseUnknownPath, sendProblem, statusOfThrown } from "./problem.ts";
export { ServiceError, serviceStatuses, type ServiceErrorCode } from "./service-error.ts";
export { codeOf, messageOf } from "./thrown.ts";
