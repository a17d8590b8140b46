import {
  assertNoKeyClaimed,
  createTrustInspector,
  createWarnOnce,
  GuardError,
  guard,
  quoteForLog,
  type GuardRequest,
  type Middleware,
} from "@countersign/guard";
import { parseAddress } from "./address.ts";
import { countForwardedFor, warnOfDoubtfulTrust } from "./forwarded-for.ts";
import { resolveOptions, type IpAllowlistOptions } from "./options.ts";

/**
 * Admits requests whose client address is in `allow`, and refuses all others with 401. The client address is Express's
 * `req.ip`, or the peer of the socket without Express. Refuses everything with 500 while `trust proxy` lets the caller choose
 * its address. Throws a TypeError on a bad option.
 */
export function ipAllowlist(options: IpAllowlistOptions): Middleware {
  const { isAllowed, status } = resolveOptions(options);
  const warnOnce = createWarnOnce("ipAllowlist");
  const inspectTrust = createTrustInspector(warnOnce);

  return guard("ipAllowlist", (req) => {
    assertNoKeyClaimed("ipAllowlist", req);
    const trust = inspectTrust(req);
    warnOfDoubtfulTrust(req, trust, { isAllowed, warnOnce });
    const address = clientAddress(req);
    if (!isAllowed(address)) throw refusal(status, address);
    // Express stops at the first address that it does not trust. A trusted one means that it ran out of addresses: the proxy
    // named no client, or the hop count is larger than the chain and the caller wrote the rest of it.
    if (trust?.(address, countForwardedFor(req))) {
      const message =
        "every address of the request is a trusted proxy, so none is the client's: the proxy sent no X-Forwarded-For, " +
        "or the app's trust proxy setting counts more hops than there are";
      warnOnce({ code: "ip-is-proxy", message, req });
      throw new GuardError({ status, code: "ip-is-proxy", message });
    }
  });
}

// On a unix socket Express's address is undefined: falling back to the peer there would change nothing, elsewhere it would
// undo what the platform has put into req.ip.
function clientAddress(req: GuardRequest): string | undefined {
  return "ip" in req ? req.ip : req.socket.remoteAddress;
}

function refusal(status: number, address: string | undefined): GuardError {
  if (address === undefined) {
    return new GuardError({ status, code: "ip-unknown", message: "the request has no client address" });
  }
  const known = parseAddress(address, new Uint32Array(4)) !== "unknown";
  return new GuardError({
    status,
    code: known ? "ip-not-allowed" : "ip-unknown",
    message: `the client address ${quoteForLog(address)} is ${known ? "not in the list" : "no IP address"}`,
  });
}
