import { isIP } from "node:net";
import { fieldLines, isGuardError, type HeaderLines } from "@countersign/core";
import { trustsEverybody, type TrustFunction } from "@countersign/express";
import { admitAddress, compileAllowlist } from "@countersign/ip-allowlist";
import { explanation, quoted, type Explanation } from "./explanation.ts";

/** A request whose address is not admitted, and how it is looked at. */
export interface ExplainedAddress extends HeaderLines {
  /** The address of the socket's other end. */
  readonly peer: string | undefined;
  /**
   * Express's setting `trust proxy`: the number of proxies, their addresses and CIDR blocks, or any setting as Express has compiled it,
   * `app.get("trust proxy fn")`. Default none is trusted.
   */
  readonly trustProxy?: number | readonly string[] | TrustFunction | undefined;
  /** The addresses and CIDR blocks that are admitted. */
  readonly allow: readonly string[];
}

const maxHops = 32;

/**
 * Says which address of a request was taken for the client's, which proxy hop decided that, and which one would have been admitted. X-Forwarded-For is what
 * callers and proxies have written: an entry that would be admitted is no proof of who called. Throws a TypeError on a bad list, and
 * what a trust function throws.
 */
export function explainAddress({ peer, trustProxy, allow, rawHeaders }: ExplainedAddress): Explanation {
  const isAllowed = compileAllowlist(allow);
  const trusts = trustOf(trustProxy);
  // From the socket outwards: a proxy writes the address of its own peer behind those that it got.
  const forwarded = fieldLines({ rawHeaders }, "x-forwarded-for")
    .flatMap((line) => line.slice(0, 4096).split(","))
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
  const written = forwarded.slice(-maxHops);
  written.reverse();
  const hops = [peer ?? "", ...written];
  const untrusted = hops.findIndex((address, hop) => !trusts(address, hop));
  const taken = untrusted === -1 ? hops.length - 1 : untrusted;
  const address = hops[taken] ?? "";
  const details = hops.map(
    (hop, index) => `${placeOf(index)}: ${quoted(hop)}${roleOf(index, { taken, untrusted, trustProxy })}`,
  );
  if (typeof trustProxy === "function" && trustsEverybody(trustProxy)) {
    return explanation(
      "address-everybody-trusted",
      "trust-proxy-unsafe",
      "Set trust proxy to the addresses of your proxies: it trusts every address, so that callers choose their own.",
      details,
    );
  }
  try {
    admitAddress(address === "" ? undefined : address, isAllowed);
  } catch (error) {
    if (!isGuardError(error)) throw error;
    const found = explainTaken({
      hops,
      taken,
      isAllowed,
      trustProxy,
      isProxy: untrusted === -1,
      code: error.code,
    });
    return { ...found, details };
  }
  if (untrusted === -1 && hops.length > 0 && trustProxy !== undefined) {
    return explanation(
      "address-is-proxy",
      "ip-is-proxy",
      "Let the proxy send X-Forwarded-For, or count fewer proxies in trust proxy: every address of the request is a trusted proxy.",
      details,
    );
  }
  return explanation("verifies", undefined, `The address ${quoted(address)} is in the list.`, details);
}

function trustOf(trustProxy: ExplainedAddress["trustProxy"]): (address: string, hop: number) => boolean {
  if (trustProxy === undefined || trustProxy === 0) return () => false;
  // Express has no address of a peer on a unix socket.
  if (typeof trustProxy === "function") return (address, hop) => trustProxy(address || undefined, hop);
  if (typeof trustProxy === "number") return (_, hop) => hop < trustProxy;
  return compileAllowlist(trustProxy);
}

function placeOf(hop: number): string {
  return hop === 0 ? "the socket" : `entry ${hop} of X-Forwarded-For from its end`;
}

/** What a hop is by trust proxy: Express goes on from each that is trusted, and takes the first that is not. */
function roleOf(
  hop: number,
  { taken, untrusted, trustProxy }: Pick<Taken, "taken" | "trustProxy"> & { readonly untrusted: number },
): string {
  if (hop < taken) return ", trusted as a proxy";
  if (hop > taken) return "";
  if (untrusted === -1) return ", taken, since nothing is behind it";
  if (typeof trustProxy === "number") return `, taken, since trust proxy counts ${trustProxy}`;
  return `, taken, since trust proxy does not trust it`;
}

interface Taken {
  readonly hops: readonly string[];
  readonly taken: number;
  readonly isAllowed: (address: string | undefined) => boolean;
  readonly trustProxy: ExplainedAddress["trustProxy"];
  readonly isProxy: boolean;
  readonly code: string;
}

function explainTaken({ hops, taken, isAllowed, trustProxy, code }: Taken): Explanation {
  const address = hops[taken] ?? "";
  const form = formOf(address);
  if (form !== undefined && isAllowed(form.address)) {
    return explanation(
      "address-form",
      code,
      `Let the proxy write addresses alone into X-Forwarded-For: it has ${quoted(address)}, ${form.says}.`,
    );
  }
  const admitted = hops.findIndex((hop) => isAllowed(hop));
  const of = `the address of ${placeOf(taken)}, ${quoted(address)}`;
  const isFunction = typeof trustProxy === "function";
  if (admitted > taken) {
    const further = isFunction
      ? `Let the function of trust proxy trust ${quoted(address)} at hop ${taken}, if it is a proxy of yours`
      : `Set trust proxy to the addresses of your proxies, of which there would be ${admitted}`;
    return explanation(
      taken === 0 && trustProxy === undefined ? "address-proxy-not-trusted" : "address-further-hop",
      code,
      `${further}: taken was ${of}, and admitted would be ${placeOf(admitted)}, ${quoted(hops[admitted] ?? "")}.`,
    );
  }
  if (admitted !== -1) {
    const nearer = isFunction
      ? `Let the function of trust proxy trust no hop from ${admitted} on`
      : `Count ${admitted} ${admitted === 1 ? "proxy" : "proxies"} in trust proxy`;
    return explanation(
      "address-nearer-hop",
      code,
      `${nearer}, if there are no more: taken was ${of}, which the caller may have written, and admitted would be ${placeOf(admitted)}, ${quoted(hops[admitted] ?? "")}.`,
    );
  }
  return explanation(
    address === "" ? "address-unknown" : "address-not-listed",
    code,
    address === ""
      ? "Let the request come over a socket with an address, or from a proxy that names the client: there is none."
      : `Put ${quoted(address)} into the list if it is the caller's, and no other hop is: taken was ${of}.`,
  );
}

// What proxies write beside an address.
function formOf(text: string): { readonly address: string; readonly says: string } | undefined {
  const bracketed = /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1];
  if (bracketed !== undefined && isIP(bracketed) !== 0) return { address: bracketed, says: "with brackets" };
  const withPort = /^([\d.]+):\d+$/.exec(text)?.[1];
  if (withPort !== undefined && isIP(withPort) !== 0) return { address: withPort, says: "with a port" };
  const bare = text.replaceAll(/^["']|["']$/g, "");
  return bare !== text && isIP(bare) !== 0 ? { address: bare, says: "in quotes" } : undefined;
}
