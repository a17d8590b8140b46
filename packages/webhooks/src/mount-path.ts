import { pathOf, type GuardRequest } from "@countersign/guard";

/** A request as a router leaves it. */
export type MountedRequest = GuardRequest & {
  /** What was stripped from `url`; Express alone. */
  readonly baseUrl?: unknown;
  /** What Express notes about the route that matched last, also when that one is over. */
  readonly route?: { readonly path?: unknown } | undefined;
};

/** Whether a router brought the request: Express, or one that keeps `originalUrl` while it strips the mount path, as connect does. */
export function hasRouter({ originalUrl, baseUrl }: MountedRequest): boolean {
  return typeof originalUrl === "string" || typeof baseUrl === "string";
}

/**
 * Whether the request is for the very path of the endpoint and none below it. `app.use` strips its path and leaves `/`; a route
 * leaves the path: a plain one is here compared by letter case too, a pattern has matched. Absolute-form targets are none.
 */
export function isMountPath(req: MountedRequest): boolean {
  const path = pathOf(req.url ?? "/");
  const routed = [req.route?.path].flat();
  if (path === "/" || routed.includes(path)) return true;
  // A pattern that may be of an earlier route: to check what is not for the endpoint beats to let pass what is.
  return path.startsWith("/") && !routed.every(isPlainPath);
}

/** Whether the endpoint was mounted without a path, and so stands before every request of the app. */
export function isWithoutPath(req: MountedRequest): boolean {
  return req.route === undefined && req.originalUrl === req.url && pathOf(req.url ?? "/") !== "/";
}

// What neither Express 4 nor 5 takes for more than itself.
function isPlainPath(path: unknown): boolean {
  return path === undefined || (typeof path === "string" && /^[A-Za-z0-9/._~-]*$/.test(path));
}
