import {
  GuardError,
  guard,
  isMountPath,
  pathOf,
  type GuardRequest,
  type Middleware,
} from "@countersign/guard";

/**
 * Admits POST to exactly the path on which `endpoint()` is mounted. What the service signs for another method or below that path
 * is no payout. Refuses instead of calling `next()`: the handler that pays may stand behind in the same `app.use`.
 */
export function payoutRequest(endpoint: () => Middleware): Middleware {
  return guard("payoutRequest", (req) => {
    if (!isMountPath(req, endpoint()) || hasFinalSlash(req)) throw pathNotMounted();
    if (req.method !== "POST") throw methodNotAllowed();
  });
}

/** Whether the router took `/path/` for `/path`. Only where it left nothing of the path: a route names its final slash itself. */
function hasFinalSlash({ url = "/", originalUrl = "/" }: GuardRequest): boolean {
  const original = pathOf(originalUrl);
  return pathOf(url) === "/" && original !== "/" && original.endsWith("/");
}

function pathNotMounted(): GuardError {
  return new GuardError({
    status: 404,
    code: "path-not-mounted",
    message:
      "the request is for another path than the one on which payoutEndpoint() is mounted; write " +
      "app.post(path, payoutEndpoint(options), handler) with the path as the service calls it",
  });
}

function methodNotAllowed(): GuardError {
  return new GuardError({
    status: 405,
    code: "method-not-allowed",
    message: "payouts are instructed with POST",
    // RFC 9110 section 15.5.6.
    headers: { Allow: "POST" },
  });
}
