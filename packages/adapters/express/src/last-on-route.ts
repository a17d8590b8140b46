import { keyClaims } from "@countersign/core/internal";
import type { GuardRequest, Middleware } from "./types.ts";

/** A request in a route of Express, which has its handlers in order. */
type RoutedRequest = GuardRequest & {
  readonly route?: { readonly stack?: unknown } | undefined;
};

interface Layer {
  readonly handle?: unknown;
  /** In lower case; undefined for every method. */
  readonly method?: string | undefined;
}

/** A middleware that responds itself, so that nothing after it runs. */
interface LastMiddleware {
  readonly own: Middleware;
  /** What messages call it, such as `receiveWebhook()`. */
  readonly called: string;
  /** True if it lets no request pass: then any handler after it is refused, not checks alone. */
  readonly isLast: boolean;
}

const checkName =
  /^(ipAllowlist|contentDigest|httpSignatureVerify|httpsOnly|webhookBasicAuth|webhookHmac)Middleware$/;

/**
 * Throws a GuardError (500, `checked-after-claim`) when a check follows `own` on its route: it would never run, and anybody could pay.
 * Sees the handlers of one route alone; what `app.use` mounts is unknown to it.
 */
export function assertLastOnRoute(req: RoutedRequest, { own, called, isLast }: LastMiddleware): void {
  const stack = req.route?.stack;
  if (!Array.isArray(stack)) return;
  const all: readonly Layer[] = stack;
  const sent = req.method?.toLowerCase();
  // app.all() lists every handler once for each method.
  const handles = all.flatMap(({ method, handle }) =>
    method === undefined || method === sent ? [handle] : [],
  );
  // Express keeps the route that matched before: `own` may be mounted by app.use.
  const position = handles.indexOf(own);
  if (position < 0) return;
  for (const handle of handles.slice(position + 1)) {
    // Express recognises an error handler by its four parameters.
    if (typeof handle !== "function" || handle.length === 4) continue;
    const check = checkName.exec(handle.name)?.[1];
    if (check === undefined && !isLast) continue;
    throw keyClaims.misplaced(
      `${check === undefined ? "a handler" : `${check}()`} is mounted after ${called}, which responds itself, so it never runs: ` +
        `mount ${called} as the last one of the route`,
    );
  }
}
