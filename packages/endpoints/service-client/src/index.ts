export { createServiceClient, type ServiceClient } from "./service-client.ts";
export type { ServiceClientOptions } from "./options.ts";
export type { WebhookEndpoint } from "./webhook-endpoint.ts";
export { ServiceClientError, type ServiceClientErrorCode } from "./service-client-error.ts";
export { readCapped, type CappedBody } from "./capped-body.ts";
export { joinServiceUrl } from "./service-url.ts";
export { ReceiptError, verifyReceipt, type Receipt, type ReceiptOptions } from "./receipt.ts";
