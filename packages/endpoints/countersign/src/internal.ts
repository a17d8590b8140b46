// For adapters, and for packages that call the service themselves.
export { exchange } from "./client/exchange.ts";
export { assertCertificatesAreVerified } from "./client/options.ts";
export { redact } from "./client/redact.ts";
export { parseRetryAfter } from "./client/retry.ts";
export { serviceUrlFault } from "./client/service-url.ts";
export { payoutReception, type PayoutReception } from "./payout/reception.ts";
