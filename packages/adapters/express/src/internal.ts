// For authors of checks and endpoints on Express.
export { chain, composedGuard, expectManyProperties } from "./guard.ts";
export { holdResponse } from "./held-response.ts";
export { thrownByCheck } from "./handed-on.ts";
export { assertLastOnRoute } from "./last-on-route.ts";
export { createCodingWatch } from "./coding-watch.ts";
export { offerBody } from "./later-body.ts";
export { reportFailure, whileConnected } from "./node-response.ts";
export { isMountPath, pathOf, proxyTrust, type TrustFunction } from "./received-request.ts";
