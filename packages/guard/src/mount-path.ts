import type { GuardRequest, Middleware } from "./types.ts";

/** What Express notes about the route that matched last. */
interface Routed {
  readonly route?:
    | { readonly path?: unknown; readonly stack?: readonly { readonly handle?: unknown }[] | undefined }
    | undefined;
}

// Without a character that either version of Express reads as part of a pattern.
const literalPath = /^[\w./~-]*$/;

/**
 * Whether the request is for the very path of an endpoint and none below it. `app.use` strips its path and leaves `/`; a route
 * such as `app.post` leaves the path and names it in `req.route`, here compared by letter case and final slash too. A route whose
 * path is a pattern counts when it holds `endpoint` itself, since then it is the one that runs. Where no router was, under plain
 * node:http, the server has chosen by itself: true. Absolute-form targets are for no path.
 */
export function isMountPath(req: GuardRequest & Routed, endpoint?: Middleware): boolean {
  const { url = "/", originalUrl, route } = req;
  if (originalUrl === undefined) return true;
  const path = pathOf(url);
  // A route that matched before and called next() is still in req.route: it must not admit what is below a path of app.use.
  if (path === "/" || path === route?.path) return true;
  if (endpoint === undefined || isLiteral(route?.path)) return false;
  return route?.stack?.some(({ handle }) => handle === endpoint) === true;
}

/** The path of a request target, without its query. */
export function pathOf(target: string): string {
  const query = target.indexOf("?");
  return query === -1 ? target : target.slice(0, query);
}

function isLiteral(path: unknown): boolean {
  return typeof path === "string" && literalPath.test(path);
}
