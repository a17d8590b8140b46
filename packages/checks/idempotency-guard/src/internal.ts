export type { KeptAnswer } from "./answer-record.ts";
export { keyGuard } from "./check.ts";
export { admission, EarlyAnswer, goOn, unpaidAnswers, type Admission } from "./middleware.ts";
export type { Handling } from "./keyed-request.ts";
export {
  leaseOptions,
  resolveOwnerOptions,
  type KeyOwnerOptions,
  type TransactionGuardOptions,
} from "./options.ts";
export type { HandlerEnd, OwnedRequest } from "./owned-request.ts";
export { leaseRequests, transactionRequests, type Drainable, type Performance } from "./perform-request.ts";
export { withoutResponse } from "./refusals.ts";
export { respondedEnd, watchOf, type ResponseWatch } from "./response-watch.ts";
