// For authors of adapters, checks and stores, on top of index.ts.
export {
  asBuffer,
  assertReadableBody,
  assertWholeHead,
  bodyRefusals,
  capturedRawBody,
  fieldLines,
  isJsonMediaType,
  isLimitBytes,
  isSentAsIs,
  receivedRequests,
  recordRawBody,
  untilNotCutLate,
  type HeaderLines,
} from "./received-request.ts";
export type { BodyCode, JsonCode } from "./codes.ts";
export { assertStrictJson, claimsJson, defaultMaxDepth, parsedJson, parseJsonBody } from "./json-body.ts";
export {
  appAnswers,
  askApp,
  askStore,
  Deadlines,
  inTime,
  isPromiseLike,
  systemClock,
  type StoreStep,
} from "./deadlines.ts";
export { pageOf } from "./docs.ts";
export { comeAgain, deliberate, requestAborted, unanswered, type HeaderFields } from "./guard-error.ts";
export {
  escapeForLog,
  holdsLoneSurrogate,
  identifierFault,
  loneSurrogateRefusal,
  parseJsonBytes,
  readJsonBytes,
} from "./wire-text.ts";
export {
  isCredentialText,
  readSecretText,
  readSecretTexts,
  readUserName,
  secretFault,
  userNameFault,
} from "./secret-text.ts";
export { keyClaims, shareFacts } from "./request-fact.ts";
export { causedBy, isError } from "./errors.ts";
export { nearest } from "./nearest.ts";
export { limitRule } from "./limit-bytes.ts";
export { RefreshingValue } from "./refreshing-value.ts";
export { assertFunction, hasMethods, option, refuseInProduction } from "./option-rules.ts";
export {
  assertKnownOptions,
  holderOf,
  optionError,
  readOptions,
  splitOptions,
  type Given,
  type OptionOwner,
  type OptionRule,
  type OptionTable,
  type ReadOptions,
} from "./options.ts";
export { problems, type ProblemAnswer, type Replacement } from "./problem.ts";
export {
  boundedLabel,
  builtChannelName,
  createWarnOnce,
  listen,
  publishFailure,
  publishNotice,
  publishThrown,
  type Built,
  type BuiltFact,
  type WarnOnce,
} from "./observation/channels.ts";
export { LineLimit } from "./observation/line-limit.ts";
export { reportReject, warnOfError, withoutCredentials } from "./observation/stderr-lines.ts";
export { Steps, verdicts } from "./observation/verdict.ts";
export { aroundTrace, traced } from "./observation/traces.ts";
export { workSlices } from "./work-slices.ts";
