export { gracefulClose } from "@countersign/payout";
export { digestedRoute } from "./digested-route.ts";
export { refusalResponse, type RefusalOptions } from "./answer.ts";
export { receivedRequest } from "./received-request.ts";
export {
  checkedRoute,
  idempotentRoute,
  payoutRoute,
  webhookRoute,
  type CheckedRouteOptions,
  type DrainableRoute,
  type FetchRoute,
  type IdempotentRouteOptions,
  type PayoutHandler,
  type PayoutRouteOptions,
  type WebhookRouteOptions,
} from "./routes.ts";
export { signedRoute } from "./signed-route.ts";
