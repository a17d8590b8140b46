import { isIP } from "node:net";
import { fieldLines, type HeaderLines } from "@countersign/core/door";
import { trustsEverybody, type TrustFunction } from "@countersign/express/door";
import { admitAddress, compileAllowlist } from "@countersign/ip-allowlist";
import { explanation, quoted, refusalOf, type Explanation, type Remedy } from "./explanation.ts";

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
  const why = untrusted === -1 ? "nothing is behind it" : whyUntrusted(trustProxy);
  const details = hops.map((hop, index) => {
    const role = index < taken ? ", trusted as a proxy" : index > taken ? "" : `, taken, since ${why}`;
    return `${placeOf(index)}: ${quoted(hop)}${role}`;
  });
  const withHops = (code: string, [what, sentence]: Remedy): Explanation =>
    explanation(what, code, sentence, details);
  if (typeof trustProxy === "function" && trustsEverybody(trustProxy)) {
    const advice = "Set trust proxy to the addresses of your proxies";
    const sentence = `${advice}: it trusts every address, so that callers choose their own.`;
    return withHops("trust-proxy-unsafe", ["address-everybody-trusted", sentence]);
  }
  const address = hops[taken] ?? "";
  const code = refusalOf(() => admitAddress(address === "" ? undefined : address, isAllowed));
  if (code !== undefined) return withHops(code, remedyOf(hops, { taken, isAllowed, trustProxy }));
  if (untrusted === -1 && trustProxy !== undefined) {
    const advice = "Let the proxy send X-Forwarded-For, or count fewer proxies in trust proxy";
    const sentence = `${advice}: every address of the request is a trusted proxy.`;
    return withHops("ip-is-proxy", ["address-is-proxy", sentence]);
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

// Express goes on from each that is trusted, and takes the first that is not.
function whyUntrusted(trustProxy: ExplainedAddress["trustProxy"]): string {
  return typeof trustProxy === "number"
    ? `trust proxy counts ${trustProxy}`
    : "trust proxy does not trust it";
}

interface Taken {
  readonly taken: number;
  readonly isAllowed: (address: string | undefined) => boolean;
  readonly trustProxy: ExplainedAddress["trustProxy"];
}

function remedyOf(hops: readonly string[], { taken, isAllowed, trustProxy }: Taken): Remedy {
  const address = hops[taken] ?? "";
  const form = formsOf(address).find(({ bare }) => isAllowed(bare));
  if (form !== undefined) {
    const advice = "Let the proxy write addresses alone into X-Forwarded-For";
    return ["address-form", `${advice}: it has ${quoted(address)}, ${form.says}.`];
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
      "Let the request come over a socket with an address, or from a proxy that names the client";
    return ["address-unknown", `${advice}: there is none.`];
  }
  const advice = `Put ${quoted(address)} into the list if it is the caller's, and no other hop is`;
  return ["address-not-listed", `${advice}: ${got}.`];
}

/** What proxies write beside an address. */
function formsOf(text: string): readonly { readonly bare: string; readonly says: string }[] {
  const forms: readonly (readonly [says: string, bare: string | undefined])[] = [
    ["with brackets", /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1]],
    ["with a port", /^([\d.]+):\d+$/.exec(text)?.[1]],
    ["in quotes", /^["']+([^"']*)["']+$/.exec(text)?.[1]],
  ];
  return forms.flatMap(([says, bare = ""]) => (isIP(bare) === 0 ? [] : [{ bare, says }]));
}
