export { chain } from "./chain.ts";
export { guard, requestAborted, type GuardFunction } from "./guard.ts";
export { GuardError, isGuardError, type GuardErrorInit } from "./guard-error.ts";
export { guardErrors, type GuardErrorsOptions } from "./guard-errors.ts";
export {
  guardChannel,
  guardChannelName,
  noticeChannelName,
  publishFailure,
  publishNotice,
  type GuardEvent,
  type GuardNotice,
} from "./diagnostics.ts";
export { createTrustInspector, type TrustFunction, type TrustInspector } from "./trust-proxy.ts";
export { createWarnOnce, type Warning, type WarnOnce } from "./warn-once.ts";
export { expectManyProperties } from "./many-properties.ts";
export { identifierFault } from "./identifier-text.ts";
export { isMountPath, pathOf } from "./mount-path.ts";
export { quoteForLog } from "./log-text.ts";
export { assertNoKeyClaimed, markKeyClaimed } from "./key-claimed.ts";
export { createRequestFact, type RequestFact } from "./request-fact.ts";
export {
  assertFunction,
  assertKnownOptions,
  booleanOption,
  clockOption,
  integerOption,
  optionError,
  refuseInProduction,
} from "./options.ts";
export { withOwnOptionNames, type ChainPart } from "./own-option-names.ts";
export { isPromiseLike, withDeadline } from "./deadline.ts";
export type { ErrorMiddleware, GuardRequest, GuardResponse, Middleware, NextFunction } from "./types.ts";
