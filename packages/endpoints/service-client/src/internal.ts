// For packages that call the service themselves.
export { exchange } from "./exchange.ts";
export { assertCertificatesAreVerified } from "./options.ts";
export { redact } from "./redact.ts";
export { parseRetryAfter } from "./retry.ts";
export { serviceUrlFault } from "./service-url.ts";
