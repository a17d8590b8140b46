// What a payout endpoint needs beside it, for projects in which only direct dependencies can be imported (pnpm).
export {
  gracefulClose,
  type CloseReport,
  type Drainable,
  type GracefulCloseOptions,
  type Middleware,
} from "@countersign/express";
export type { DrainOptions, DrainReport } from "@countersign/idempotency";
export type { DrainableMiddleware } from "@countersign/idempotency-guard";
export { captureRawBody } from "@countersign/raw-body";
export type { PayoutCode } from "./codes.ts";
export type { PayoutFault, PayoutFaultCode } from "./faults.ts";
export {
  assertPost,
  payoutOf,
  type BusinessAnswer,
  type BusinessQuery,
  type FindBusiness,
  type Payout,
} from "./payout.ts";
export { payoutStoreKey, type PayoutBeneficiary } from "./schema.ts";
export { payoutEndpoint } from "./middleware.ts";
export type {
  PayoutAddresses,
  PayoutEndpointOptions,
  PayoutIdempotency,
  PayoutMaxLengths,
  PayoutOptions,
  PayoutSignature,
} from "./options.ts";
export { payoutReception, type FoundOfPayout, type PayoutDoor, type PayoutReception } from "./reception.ts";
