export type { DrainableMiddleware } from "@countersign/idempotency-guard";
export { answer, refuse, retryLater, type HandlerAnswer } from "@countersign/idempotency-guard";
export { captureRawBody } from "@countersign/raw-body";
export type { PayoutCode, PayoutFaultCode } from "./faults.ts";
export {
  gracefulClose,
  payoutEndpoint,
  type Middleware,
  type PayoutEndpointOptions,
  type PayoutOptions,
  type PayoutTransactionOptions,
} from "./middleware.ts";
export type { BusinessQuery } from "./options.ts";
export { payoutOf, type Payout } from "./payout.ts";
export { payoutStoreKey } from "./schema.ts";
