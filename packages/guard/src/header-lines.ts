import type { Socket } from "node:net";
import { GuardError } from "./guard-error.ts";
import type { GuardRequest } from "./types.ts";

// What Node's parser keeps of names and values together where server.maxHeadersCount is not set.
const usualLimit = 2_000;

/**
 * Throws a GuardError (431) when Node may have left header lines out. Where it does not refuse them itself, it drops those beyond
 * `server.maxHeadersCount` without a word: enough lines of a caller's own hide the X-Forwarded-For that a proxy puts behind
 * them, or the second Authorization.
 */
export function assertAllHeaderLines(req: GuardRequest): void {
  const { rawHeaders, socket }: Received = req;
  if (rawHeaders === undefined || rawHeaders.length < limitOf(socket?.server?.maxHeadersCount)) return;
  throw new GuardError({
    status: 431,
    code: "header-lines-dropped",
    message: "the request has as many header lines as the server keeps, and may have had more",
  });
}

/** An imitation of a request may lack each of these. */
interface Received {
  readonly rawHeaders?: readonly string[] | undefined;
  readonly socket?: (Socket & { readonly server?: { readonly maxHeadersCount?: unknown } }) | undefined;
}

function limitOf(maxHeadersCount: unknown): number {
  if (typeof maxHeadersCount !== "number") return usualLimit;
  return maxHeadersCount > 0 ? maxHeadersCount * 2 : Infinity;
}
