// What a payout endpoint needs beside it, for projects in which only direct dependencies can be imported (pnpm).
export type { Middleware } from "@countersign/guard";
export type { DrainableMiddleware, DrainOptions, DrainReport } from "@countersign/idempotency-guard";
export { captureRawBody } from "@countersign/raw-body";
export type { PayoutFault, PayoutFaultCode } from "./faults.ts";
export type { BusinessAnswer, BusinessQuery, FindBusiness } from "./find-business.ts";
export { payoutStoreKey } from "./idempotency-key.ts";
export { payoutEndpoint } from "./middleware.ts";
export type { PayoutEndpointOptions, PayoutMaxLengths } from "./options.ts";
export { payoutOf, type Payout } from "./payout.ts";
export type { PayoutBeneficiary } from "./schema.ts";
