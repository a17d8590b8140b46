export { gracefulClose } from "@countersign/payout";
export { digestedRoute, signedRoute } from "./finished-routes.ts";
export { refusalResponse, type RefusalOptions } from "./answer.ts";
export { receivedRequest } from "./received-request.ts";
export {
  checkedRoute,
  idempotentRoute,
  payoutRoute,
  webhookRoute,
  type DrainableRoute,
  type FetchRoute,
  type PayoutRouteOptions,
  type WebhookRouteOptions,
} from "./routes.ts";
