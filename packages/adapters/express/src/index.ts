export { captureRawBody } from "./body.ts";
export { gracefulClose, type CloseReport, type Drainable } from "./graceful-close.ts";
export { guard } from "./guard.ts";
export { guardErrors } from "./guard-errors.ts";
export { receivedRequest } from "./received-request.ts";
export type { ErrorMiddleware, ExpressCode, GuardRequest, GuardResponse, Middleware } from "./types.ts";
