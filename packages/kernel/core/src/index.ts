export { askStore, type StoreStep } from "./ask-store.ts";
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
  type ReceivedRequest,
} from "./received-request.ts";
export { builtChannelName, type Built, type BuiltFact, type BuiltFacts } from "./built.ts";
export type { BodyCode, CoreCode, JsonCode } from "./codes.ts";
export {
  Deadlines,
  inTime,
  isPromiseLike,
  systemClock,
  withDeadline,
  type Clock,
  type Expiring,
} from "./deadlines.ts";
export { docsOf, pageOf } from "./docs.ts";
export {
  guardChannel,
  guardChannelName,
  noticeChannelName,
  publishFailure,
  publishNotice,
  type GuardEvent,
  type GuardNotice,
} from "./diagnostics.ts";
export {
  comeAgain,
  GuardError,
  isGuardError,
  requestAborted,
  type GuardErrorInit,
  type HeaderFields,
} from "./guard-error.ts";
export { escapeForLog, identifierFault, parseJsonBytes, quoteForLog, type ParsedJson } from "./wire-text.ts";
export {
  assertNoKeyClaimed,
  createRequestFact,
  markKeyClaimed,
  shareFacts,
  type RequestFact,
} from "./request-fact.ts";
export { limitRule } from "./limit-bytes.ts";
export { boundedLabel, listen, type Listener } from "./listener.ts";
export { LiveValue, type Loaded, type LiveSource } from "./live-value.ts";
export type { NonceClaim, NonceStore } from "./nonce-store.ts";
export { assertFunction, option, refuseInProduction } from "./option-rules.ts";
export {
  assertKnownOptions,
  holderOf,
  OptionError,
  optionError,
  readOptions,
  splitOptions,
  type Given,
  type OptionOwner,
  type OptionRule,
  type OptionTable,
  type ReadOptions,
} from "./options.ts";
export {
  problemAnswer,
  statusAnswer,
  titleOf,
  type ProblemAnswer,
  type ProblemOptions,
  type Replacement,
} from "./problem.ts";
export { reportReject, warnOfError } from "./reject-report.ts";
export {
  noteVerdict,
  publishVerdict,
  refusedWith,
  startVerdict,
  Steps,
  tellLeftover,
  writeUnheardRefusal,
  type Judge,
} from "./verdict.ts";
export {
  claimTrace,
  eventTrace,
  keyUseChannelName,
  leaseLostChannel,
  onTraceEnd,
  aroundTrace,
  settledChannel,
  storeTrace,
  traced,
  waitTrace,
  type Around,
  type ClaimTrace,
  type EventTrace,
  type KeyUseEvent,
  type LeaseLostEvent,
  type SettledEvent,
  type StoreTrace,
  type Trace,
  type TraceContext,
  type WaitTrace,
} from "./traces.ts";
export type { Verdict, VerdictFacts } from "./verdict-record.ts";
export { createWarnOnce, type Warning, type WarnOnce } from "./warn-once.ts";
