import type { GuardRequest, TrustFunction, Warning, WarnOnce } from "@countersign/guard";
import type { AddressMatcher } from "./allowlist.ts";

interface Context {
  readonly isAllowed: AddressMatcher;
  readonly warnOnce: WarnOnce;
}

/** Warns once of a list of addresses and a `trust proxy` setting that do not go together, and of one that is missing. */
export function warnOfDoubtfulTrust(
  req: GuardRequest,
  trust: TrustFunction | undefined,
  context: Context,
): void {
  if (trust !== undefined) warnOfListedProxy(trust, req, context);
  else if (req.headers["x-forwarded-for"] !== undefined) context.warnOnce(ignoredField(req));
}

/**
 * The number of addresses in X-Forwarded-For, counted as Express counts them: the distance of the last address that its
 * `trust proxy` could reach.
 */
export function countForwardedFor(req: GuardRequest): number {
  const field = req.headers["x-forwarded-for"];
  if (field === undefined) return 0;
  return String(field)
    .split(",")
    .filter((part) => /[^ ]/.test(part)).length;
}

// With the proxy itself in the list, one request that it forwards without X-Forwarded-For would admit everybody behind it.
function warnOfListedProxy(trust: TrustFunction, req: GuardRequest, { isAllowed, warnOnce }: Context): void {
  if (warnOnce.has("proxy-in-allowlist")) return;
  const peer = req.socket.remoteAddress;
  if (!isAllowed(peer) || !trust(peer, 0)) return;
  warnOnce({
    code: "proxy-in-allowlist",
    message:
      "a trusted proxy is itself in the list of allowed addresses; requests in which it names no client are refused. " +
      "Take the proxy's address out of allow, or out of the app's trust proxy setting when it is a client",
    req,
  });
}

function ignoredField(req: GuardRequest): Warning {
  return {
    code: "forwarded-for-ignored",
    message:
      "a request carries X-Forwarded-For, but the app trusts no proxy, so the address of the direct peer is checked. " +
      'Behind a proxy, set app.set("trust proxy", [its addresses]); without one, this is a caller that tries to choose its address',
    req,
  };
}
