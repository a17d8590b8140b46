import type { GuardRequest, Middleware } from "./types.ts";

/** What Express notes about where it is, and the route that matched last. */
interface Routed {
  readonly baseUrl?: string | undefined;
  readonly route?:
    | { readonly path?: unknown; readonly stack?: readonly { readonly handle?: unknown }[] | undefined }
    | undefined;
}

// Without a character that either version of Express reads as part of a pattern.
const literalPath = /^[\w./~-]*$/;

/**
 * Whether the request is for the very path of an endpoint and none below it. `app.use` strips its path and leaves `/`; a route
 * such as `app.post` leaves the path and names it in `req.route`, here compared by letter case and final slash too. Given
 * `endpoint`, a route below a router, or one whose path is a pattern, has to hold `endpoint` itself. Where no router was, under plain
 * node:http, the server has chosen by itself: true. Absolute-form targets are for no path.
 */
export function isMountPath(req: GuardRequest & Routed, endpoint?: Middleware): boolean {
  const { url = "/", originalUrl, route } = req;
  if (originalUrl === undefined) return true;
  const path = pathOf(url);
  if (path === "/") return true;
  if (endpoint === undefined) return path === route?.path;
  // A route that matched before and called next() is still in req.route: it must not admit what is below a path of app.use.
  const isRunning = route?.stack?.some(({ handle }) => handle === endpoint) === true;
  if (!isLiteral(route?.path)) return isRunning;
  return path === route?.path && (isRunning || req.baseUrl === "");
}

/** The path of a request target, without its query. */
export function pathOf(target: string): string {
  const query = target.indexOf("?");
  return query === -1 ? target : target.slice(0, query);
}

function isLiteral(path: unknown): boolean {
  return typeof path === "string" && literalPath.test(path);
}
