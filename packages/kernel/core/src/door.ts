// What doors, checks and stores are made with, on top of index.ts: for whoever writes one.
export {
  assertAllHeaderLines,
  assertOneHost,
  asBuffer,
  assertReadableBody,
  bodyAborted,
  bodyLengthMismatch,
  bodyTooLarge,
  capturedRawBody,
  fieldLines,
  hasIdentityEncoding,
  hasKnownTransferCoding,
  isJsonMediaType,
  isLimitBytes,
  receivedRequests,
  recordRawBody,
  untilNotCutLate,
  type HeaderLines,
} from "./received-request.ts";
export { builtChannelName, type Built, type BuiltFact } from "./built.ts";
export type { BodyCode, JsonCode } from "./codes.ts";
export { askStore, Deadlines, inTime, systemClock } from "./deadlines.ts";
export { pageOf } from "./docs.ts";
export { publishFailure, publishNotice } from "./diagnostics.ts";
export { comeAgain, requestAborted, type HeaderFields } from "./guard-error.ts";
export { escapeForLog, identifierFault, parseJsonBytes } from "./wire-text.ts";
export { assertNoKeyClaimed, markKeyClaimed, shareFacts } from "./request-fact.ts";
export { limitRule } from "./limit-bytes.ts";
export { boundedLabel, listen } from "./listener.ts";
export { RefreshingValue } from "./refreshing-value.ts";
export { assertFunction, option, refuseInProduction } from "./option-rules.ts";
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
export { problemAnswer, statusAnswer, titleOf, type Replacement } from "./problem.ts";
export { reportReject, warnOfError } from "./reject-report.ts";
export {
  noteVerdict,
  publishVerdict,
  refusedWith,
  startVerdict,
  Steps,
  publishLateRefusal,
  writeUnreportedRefusal,
} from "./verdict.ts";
export { aroundTrace, isPromiseLike, traced, type Trace, type TraceContext } from "./traces.ts";
export { createWarnOnce, type WarnOnce } from "./warn-once.ts";
