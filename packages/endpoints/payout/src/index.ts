export type { DrainableMiddleware } from "@countersign/idempotency-guard";
export { captureRawBody } from "@countersign/raw-body";
export type { PayoutCode, PayoutFaultCode } from "./faults.ts";
export {
  gracefulClose,
  payoutEndpoint,
  type Middleware,
  type PayoutEndpointOptions,
  type PayoutOptions,
} from "./middleware.ts";
export type { BusinessQuery } from "./options.ts";
export { assertPost, payoutOf, payoutReception, type Payout } from "./reception.ts";
export { payoutStoreKey } from "./schema.ts";
