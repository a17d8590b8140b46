import { isIP } from "node:net";
import { GuardError, quoteForLog } from "@countersign/core";

/** An adapter that cannot tell the address refuses with `trust-proxy-unsafe`. */
export type IpAllowlistCode =
  | "allowlist-unavailable"
  | "ip-is-proxy"
  | "ip-not-allowed"
  | "ip-unknown"
  | "trust-proxy-unsafe";

/** An address as one number of 32 bits or 128. */
export interface Address {
  readonly family: "ipv4" | "ipv6";
  readonly value: bigint;
}

/** From `first` to `last`, both included. */
export interface AddressRange {
  readonly family: Address["family"];
  readonly first: bigint;
  readonly last: bigint;
}

/** Undefined for other text: ports, brackets, spaces, leading zeros, zone ids. IPv4-mapped IPv6 is IPv4 (RFC 4291 section 2.5.5.2). */
export function parseAddress(text: string): Address | undefined {
  const version = isIP(text);
  if (version === 4) return { family: "ipv4", value: ipv4Value(text) };
  // Node takes a zone id, which names an interface of this machine.
  if (version === 0 || text.includes("%")) return undefined;
  const value = ipv6Value(text);
  const isMapped = value >> 32n === 0xffffn;
  return isMapped ? { family: "ipv4", value: value & 0xffff_ffffn } : { family: "ipv6", value };
}

const addressWithPort = /^(?:(\d{1,3}(?:\.\d{1,3}){3})|\[([0-9A-Fa-f.]*:[0-9A-Fa-f:.]+)\]):(\d{1,5})$/;

/** The address in `203.0.113.7:5123` or `[2001:db8::7]:5123`. Other text is returned unchanged: of two readings none is taken. */
export function withoutPort(text: string | undefined): string | undefined {
  const [, ipv4, ipv6, port] = (text !== undefined && addressWithPort.exec(text)) || [];
  return Number(port) <= 65_535 ? (ipv4 ?? ipv6) : text;
}

function ipv4Value(text: string): bigint {
  return BigInt(text.split(".").reduce((value, octet) => value * 256 + Number(octet), 0));
}

// By one hexadecimal text: shifting eight bigints into one takes twice as long.
function ipv6Value(text: string): bigint {
  const gap = text.indexOf("::");
  if (gap === -1) return BigInt(`0x${hexOf(text)}`);
  const before = hexOf(text.slice(0, gap));
  const after = hexOf(text.slice(gap + 2));
  return BigInt(`0x${before.padEnd(32 - after.length, "0")}${after}`);
}

/** Groups of 16 bits on one side of `::`, four digits each; the last two may be written as an IPv4 address. */
function hexOf(side: string): string {
  if (side === "") return "";
  let hex = "";
  for (const group of side.split(":")) {
    hex += group.includes(".") ? ipv4Value(group).toString(16).padStart(8, "0") : group.padStart(4, "0");
  }
  return hex;
}

/** False for anything that is no address. */
export type AddressMatcher = (address: string | undefined) => boolean;

/** Binary search: the ranges of each family must be sorted and merged. */
export function createMatcher(ipv4: readonly AddressRange[], ipv6: readonly AddressRange[]): AddressMatcher {
  return function isAllowed(text) {
    const address = typeof text === "string" ? parseAddress(text) : undefined;
    if (address === undefined) return false;
    const ranges = address.family === "ipv4" ? ipv4 : ipv6;
    let low = 0;
    let high = ranges.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (ranges[middle]!.first <= address.value) low = middle + 1;
      else high = middle;
    }
    const last = ranges[low - 1]?.last;
    return last !== undefined && address.value <= last;
  };
}

/** Throws a GuardError with `status` unless `isAllowed` admits the address: `ip-unknown` for no address. */
export function assertAllowed(given: string | undefined, isAllowed: AddressMatcher, status: number): void {
  // Without TypeScript: null, as of `headers.get()`, or a list of lines.
  const address = typeof given === "string" ? given : undefined;
  if (isAllowed(address)) return;
  const isKnown = address !== undefined && parseAddress(address) !== undefined;
  const code = isKnown ? "ip-not-allowed" : "ip-unknown";
  throw new GuardError<IpAllowlistCode>({ status, code, message: whyRefused(address, isKnown) });
}

function whyRefused(address: string | undefined, isKnown: boolean): string {
  if (address === undefined) {
    return (
      "the client has no address, as behind a proxy on a unix socket: let the proxy send X-Forwarded-For, and count the proxies, " +
      'app.set("trust proxy", 1)'
    );
  }
  const hasPort = withoutPort(address) !== address;
  const what = isKnown
    ? "not in the list"
    : hasPort
      ? "an address with a port; option ignorePort takes it"
      : "no IP address";
  return `the client address ${quoteForLog(address)} is ${what}`;
}
