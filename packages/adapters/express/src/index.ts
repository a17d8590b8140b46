export { captureRawBody } from "./body.ts";
export { gracefulClose, type CloseReport, type Drainable } from "./graceful-close.ts";
export { guard } from "./guard.ts";
export { guardErrors, type GuardErrorsOptions } from "./guard-errors.ts";
export { receivedRequest } from "./received-request.ts";
export type {
  ErrorMiddleware,
  ExpressCode,
  GuardRequest,
  GuardResponse,
  Middleware,
  NextFunction,
} from "./types.ts";
