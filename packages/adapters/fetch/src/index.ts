export { gracefulClose } from "countersign/payout";
export { digestedRoute, signedRoute } from "./finished-routes.ts";
export { refusalResponse } from "./answer.ts";
export { receivedRequest } from "./received-request.ts";
export {
  checkedRoute,
  idempotentRoute,
  payoutRoute,
  webhookRoute,
  type DrainableRoute,
  type FetchRoute,
} from "./routes.ts";
