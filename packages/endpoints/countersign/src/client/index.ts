export { createServiceClient, type ServiceClient } from "./service-client.ts";
export type { WebhookEndpoint } from "./options.ts";
export { ServiceClientError, type ServiceClientErrorCode } from "./service-client-error.ts";
export { readCapped } from "./exchange.ts";
export { ReceiptError, verifyReceipt, type Receipt } from "./receipt.ts";
