import { isIP } from "node:net";
import { fieldLines, type HeaderLines } from "@countersign/core/internal";
import { proxyTrust } from "@countersign/express/internal";
import { addressAdmission, compileAllowlist } from "@countersign/ip-allowlist";
import { explanation, quoted, refusalOf, verifies, type Explanation, type Remedy } from "./explanation.ts";

type TrustFunction = Parameters<typeof proxyTrust.trustsEverybody>[0];

export interface ExplainedAddress extends HeaderLines {
  readonly peer: string | undefined;
  /** Express's `trust proxy`: a number of proxies, addresses, CIDR blocks and its names for them, or `app.get("trust proxy fn")`. Default: none is trusted. */
  readonly trustProxy?: number | readonly string[] | TrustFunction | undefined;
  readonly allow: readonly string[];
  /** As the check has it. Default false. */
  readonly ignorePort?: boolean | undefined;
}

const maxHops = 32;

/**
 * Says which address was taken for the client's, which hop decided that, and which one would be admitted. X-Forwarded-For is
 * unauthenticated: an entry that would be admitted is no proof of who called. Throws a TypeError on a bad list.
 */
export function explainAddress({
  peer,
  trustProxy,
  allow,
  ignorePort,
  rawHeaders,
}: ExplainedAddress): Explanation {
  const admit = addressAdmission({ allow, ignorePort }, "explainAddress");
  const codeOf = (given: string): string | undefined =>
    refusalOf(() => admit(given === "" ? undefined : given));
  const isAllowed = (given: string): boolean => codeOf(given) === undefined;
  const trusts = trustOf(trustProxy);
  // From the socket outwards: a proxy appends the address of its own peer.
  const hops = [...forwardedFor({ rawHeaders }), peer ?? ""];
  hops.reverse();
  const untrusted = hops.findIndex((address, hop) => !trusts(address, hop));
  const taken = untrusted === -1 ? hops.length - 1 : untrusted;
  const why = untrusted === -1 ? "nothing is behind it" : whyUntrusted(trustProxy);
  const details = hops.map((hop, index) => {
    const role = index < taken ? ", trusted as a proxy" : index > taken ? "" : `, taken, since ${why}`;
    return `${placeOf(index)}: ${quoted(hop)}${role}`;
  });
  if (typeof trustProxy === "function" && proxyTrust.trustsEverybody(trustProxy)) {
    return explanation(everybodyTrusted, "trust-proxy-unsafe", details);
  }
  const address = hops[taken] ?? "";
  const code = codeOf(address);
  if (code !== undefined) return explanation(remedyOf(hops, { taken, isAllowed, trustProxy }), code, details);
  return untrusted === -1 && trustProxy !== undefined
    ? explanation(proxyAlone, "ip-is-proxy", details)
    : verifies(`The address ${quoted(address)} is in the list.`, details);
}

const everybodyTrusted: Remedy = [
  "address-everybody-trusted",
  "Set trust proxy to the addresses of your proxies: it trusts every address, so that callers choose their own.",
];
const proxyAlone: Remedy = [
  "address-is-proxy",
  "Let the proxy send X-Forwarded-For, or count fewer proxies in trust proxy: every address of the request is a trusted proxy.",
];

function forwardedFor(request: HeaderLines): readonly string[] {
  return fieldLines(request, "x-forwarded-for")
    .flatMap((line) => line.slice(0, 4096).split(","))
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "")
    .slice(-maxHops);
}

function trustOf(trustProxy: ExplainedAddress["trustProxy"]): (address: string, hop: number) => boolean {
  if (trustProxy === undefined || trustProxy === 0) return () => false;
  // Express has no address of a peer on a unix socket.
  if (typeof trustProxy === "function") return (address, hop) => trustProxy(address || undefined, hop);
  if (typeof trustProxy === "number") return (_, hop) => hop < trustProxy;
  return compileAllowlist(trustProxy.flatMap((entry) => namedRanges.get(entry) ?? [entry]));
}

// As Express names them.
const namedRanges: ReadonlyMap<string, readonly string[]> = new Map([
  ["loopback", ["127.0.0.0/8", "::1"]],
  ["linklocal", ["169.254.0.0/16", "fe80::/10"]],
  ["uniquelocal", ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"]],
]);

function placeOf(hop: number): string {
  return hop === 0 ? "the socket" : `entry ${hop} of X-Forwarded-For from its end`;
}

// Express takes the first address that is not trusted.
function whyUntrusted(trustProxy: ExplainedAddress["trustProxy"]): string {
  return typeof trustProxy === "number"
    ? `trust proxy counts ${trustProxy}`
    : "trust proxy does not trust it";
}

interface Taken {
  readonly taken: number;
  readonly isAllowed: (address: string) => boolean;
  readonly trustProxy: ExplainedAddress["trustProxy"];
}

function remedyOf(hops: readonly string[], { taken, isAllowed, trustProxy }: Taken): Remedy {
  const address = hops[taken] ?? "";
  const other = addressForms.find(([, form]) => {
    const bare = form.exec(address)?.[1] ?? "";
    return isIP(bare) !== 0 && isAllowed(bare);
  });
  if (other !== undefined) {
    const advice =
      other[0] === portForm
        ? "Set the option ignorePort, or let the proxy write addresses alone into X-Forwarded-For"
        : "Let the proxy write addresses alone into X-Forwarded-For";
    return ["address-form", `${advice}: it has ${quoted(address)}, ${other[0]}.`];
  }
  const admitted = hops.findIndex((hop) => isAllowed(hop));
  const got = `taken was the address of ${placeOf(taken)}, ${quoted(address)}`;
  const due = `admitted would be ${placeOf(admitted)}, ${quoted(hops[admitted] ?? "")}`;
  const isFunction = typeof trustProxy === "function";
  if (admitted > taken) {
    const further = isFunction
      ? `Let the function of trust proxy trust ${quoted(address)} at hop ${taken}, if it is a proxy of yours`
      : `Set trust proxy to the addresses of your proxies, of which there would be ${admitted}`;
    const isNone = taken === 0 && trustProxy === undefined;
    return [isNone ? "address-proxy-not-trusted" : "address-further-hop", `${further}: ${got}, and ${due}.`];
  }
  if (admitted !== -1) {
    const nearer = isFunction
      ? `Let the function of trust proxy trust no hop from ${admitted} on`
      : `Count ${admitted} ${admitted === 1 ? "proxy" : "proxies"} in trust proxy`;
    const sentence = `${nearer}, if there are no more: ${got}, which the caller may have written, and ${due}.`;
    return ["address-nearer-hop", sentence];
  }
  if (address === "") {
    const advice =
      "Let the request come over a socket with an address, or from a proxy that names the client and is counted in trust proxy, as one on " +
      "a unix socket has to be";
    return ["address-unknown", `${advice}: there is none.`];
  }
  const advice = `Put ${quoted(address)} into the list if it is the caller's, and no other hop is`;
  return ["address-not-listed", `${advice}: ${got}.`];
}

const portForm = "with a port";

const addressForms: readonly (readonly [says: string, form: RegExp])[] = [
  ["with brackets", /^\[([^\]]+)\](?::\d+)?$/],
  [portForm, /^([\d.]+):\d+$/],
  ["in quotes", /^["']+([^"']*)["']+$/],
];
