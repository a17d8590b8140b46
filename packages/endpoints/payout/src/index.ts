export type { DrainOptions, DrainReport } from "@countersign/idempotency";
export type { DrainableMiddleware } from "@countersign/idempotency-guard";
export { captureRawBody } from "@countersign/raw-body";
export type { PayoutCode } from "./codes.ts";
export type { PayoutFault, PayoutFaultCode } from "./faults.ts";
export { assertPost, payoutOf, type BusinessAnswer, type BusinessQuery, type Payout } from "./payout.ts";
export { payoutStoreKey, type PayoutBeneficiary } from "./schema.ts";
export {
  gracefulClose,
  payoutEndpoint,
  type CloseReport,
  type Drainable,
  type FindBusiness,
  type GracefulCloseOptions,
  type Middleware,
  type PayoutEndpointOptions,
  type PayoutIdempotency,
  type PayoutOptions,
} from "./middleware.ts";
export type { PayoutAddresses, PayoutMaxLengths, PayoutSignature } from "./options.ts";
export { payoutReception, type FoundOfPayout, type PayoutDoor, type PayoutReception } from "./reception.ts";
