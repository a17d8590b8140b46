export {
  createServiceClient,
  type CreateOptions,
  type ServiceClient,
  type WebhookEndpointAnswer,
} from "./service-client.ts";
export type { FetchFunction, ServiceClientOptions } from "./options.ts";
export type { WebhookEndpoint } from "./webhook-endpoint.ts";
export {
  ServiceClientError,
  type ServiceClientErrorCode,
  type ServiceClientErrorInit,
} from "./service-client-error.ts";
export { readCapped, type CappedBody } from "./capped-body.ts";
export { joinServiceUrl, type UrlRules } from "./service-url.ts";
export {
  ReceiptError,
  verifyReceipt,
  type Receipt,
  type ReceiptOptions,
  type SignedExchange,
} from "./receipt.ts";
