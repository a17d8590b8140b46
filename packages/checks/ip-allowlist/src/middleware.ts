import { GuardError } from "@countersign/core";
import { createWarnOnce, keyClaims, type OptionOwner, type WarnOnce } from "@countersign/core/internal";
import { proxyTrust, type TrustFunction } from "@countersign/express/internal";
import { guard, type GuardRequest, type Middleware } from "@countersign/express";
import { assertAllowed, type AddressMatcher, type IpAllowlistCode } from "./address.ts";
import { factoryName, resolveOptions, type IpAllowlistOptions } from "./options.ts";

/**
 * Admits requests whose client address is in `allow`; refuses others with 401. The address is Express's `req.ip`, or without Express the
 * socket's peer. Refuses everything with 500 while `trust proxy` lets the caller choose its address. Throws a TypeError on a bad option.
 */
export function ipAllowlist(options: IpAllowlistOptions): Middleware {
  return guard(factoryName, expressAdmission(options));
}

/** For an endpoint made of several checks. Throws an OptionError that names `owner`. */
export function expressAdmission(
  options: IpAllowlistOptions,
  owner: OptionOwner = factoryName,
): (req: GuardRequest) => void {
  const { isAllowed, status, readClient } = resolveOptions(options, owner);
  const warnOnce = createWarnOnce(factoryName);
  const inspectTrust = proxyTrust.inspector(warnOnce);

  return (req) => {
    keyClaims.assertNone(factoryName, req);
    const trust = inspectTrust(req);
    warnOfDoubtfulTrust(req, trust, { isAllowed, warnOnce });
    const { address, isProxy } = proxyTrust.clientOf(req, trust, readClient);
    assertAllowed(address, isAllowed, status);
    if (isProxy) {
      const message =
        "every address of the request is a trusted proxy, so none is the client's: the proxy sent no X-Forwarded-For, " +
        "or the app's trust proxy setting counts more hops than there are";
      warnOnce({ code: "ip-is-proxy", message, req });
      throw new GuardError<IpAllowlistCode>({ status, code: "ip-is-proxy", message });
    }
  };
}

/** Warns once of a list that does not fit the `trust proxy` setting, and of a missing setting. */
function warnOfDoubtfulTrust(
  req: GuardRequest,
  trust: TrustFunction | undefined,
  { isAllowed, warnOnce }: { readonly isAllowed: AddressMatcher; readonly warnOnce: WarnOnce },
): void {
  if (trust === undefined) {
    if (req.headers["x-forwarded-for"] === undefined) return;
    const setting =
      req.socket.remoteAddress === undefined
        ? "1), the number of proxies, since a proxy on a unix socket has no address"
        : "[its addresses])";
    const message =
      "a request carries X-Forwarded-For, but the app trusts no proxy, so the address of the direct peer is checked. " +
      `Behind a proxy, set app.set("trust proxy", ${setting}; without one, this is a caller that tries to choose its address`;
    warnOnce({ code: "forwarded-for-ignored", message, req });
    return;
  }
  if (warnOnce.has("proxy-in-allowlist")) return;
  const peer = req.socket.remoteAddress;
  // With the proxy itself in the list, one request that it forwards without X-Forwarded-For would admit everybody behind it.
  if (!isAllowed(peer) || !trust(peer, 0)) return;
  const message =
    "a trusted proxy is itself in the list of allowed addresses; requests in which it names no client are refused. " +
    "Take the proxy's address out of allow, or out of the app's trust proxy setting when it is a client";
  warnOnce({ code: "proxy-in-allowlist", message, req });
}
