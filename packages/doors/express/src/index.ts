export type { ExpressCode } from "./codes.ts";
export { captureRawBody, refuseUnparsedBody } from "./body.ts";
export {
  gracefulClose,
  type CloseReport,
  type Drainable,
  type GracefulCloseOptions,
} from "./graceful-close.ts";
export { chain, composedGuard, expectManyProperties, guard, type GuardFunction, type Ways } from "./guard.ts";
export { guardErrors, type GuardErrorsOptions } from "./guard-errors.ts";
export { copyResponse, type Copying } from "./copied-response.ts";
export { holdResponse, type AnswerDecider } from "./held-response.ts";
export { finishResponse, type Finished, type WholeAnswer } from "./whole-response.ts";
export { createCodingWatch, whileConnected } from "./node-response.ts";
export {
  addressOf,
  countForwardedFor,
  createTrustInspector,
  isHttps,
  isMountPath,
  pathOf,
  receivedRequest,
  trustsEverybody,
  type TrustFunction,
  type TrustInspector,
} from "./received-request.ts";
export type { ErrorMiddleware, GuardRequest, GuardResponse, Middleware, NextFunction } from "./types.ts";
