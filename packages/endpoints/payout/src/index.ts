export type { DrainableMiddleware } from "@countersign/idempotency-guard";
export { captureRawBody } from "@countersign/raw-body";
export type { PayoutCode } from "./codes.ts";
export type { PayoutFaultCode } from "./faults.ts";
export { assertPost, payoutOf, type BusinessQuery, type Payout } from "./payout.ts";
export { payoutStoreKey } from "./schema.ts";
export {
  gracefulClose,
  payoutEndpoint,
  type Middleware,
  type PayoutEndpointOptions,
  type PayoutOptions,
} from "./middleware.ts";
export { payoutReception } from "./reception.ts";
