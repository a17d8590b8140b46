// For apps and subscribers; adapter.ts is for authors of adapters, checks and stores.
export type { ReceivedRequest } from "./received-request.ts";
export type { CoreCode } from "./codes.ts";
export { withDeadline } from "./deadlines.ts";
export { docsOf } from "./docs.ts";
export {
  guardChannel,
  guardChannelName,
  noticeChannelName,
  type GuardEvent,
  type GuardNotice,
  type PublishedEvents,
} from "./observation/channels.ts";
export { GuardError, isGuardError, type Verdict } from "./guard-error.ts";
export { quoteForLog } from "./wire-text.ts";
export { createRequestFact, type RequestFact } from "./request-fact.ts";
export type { NonceClaim, NonceStore } from "./nonce-store.ts";
export { OptionError } from "./options.ts";
export { channels, onTraceEnd, traces, type TraceContext } from "./observation/traces.ts";
