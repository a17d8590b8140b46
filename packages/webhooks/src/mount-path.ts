import type { GuardRequest } from "@countersign/guard";

/** What Express notes about the route that matched last. */
interface Routed {
  readonly route?: { readonly path?: unknown } | undefined;
}

/**
 * Whether the request is for the very path of the endpoint and none below it. `app.use` strips its path and leaves `/`;
 * `app.all` leaves the path and names it in `req.route`, here compared by letter case too. Absolute-form targets are none.
 */
export function isMountPath(req: GuardRequest & Routed): boolean {
  const { url = "/" } = req;
  const query = url.indexOf("?");
  const path = query === -1 ? url : url.slice(0, query);
  return path === "/" || path === req.route?.path;
}
