import { isIP } from "node:net";
import { isIPv4Mapped, parseIPv4, parseIPv6 } from "./address.ts";

/** The addresses from `first` to `last`, both included. */
export interface AddressRange {
  readonly family: "ipv4" | "ipv6";
  readonly first: bigint;
  readonly last: bigint;
}

/**
 * Reads one rule, an address or a CIDR block (RFC 4632 section 3.1, RFC 4291 section 2.3). An IPv4-mapped block is the IPv4
 * block that it maps. Returns the reason as text when the rule is refused.
 */
export function parseRule(rule: string): AddressRange | string {
  const slash = rule.indexOf("/");
  const address = slash < 0 ? rule : rule.slice(0, slash);
  const version = isIP(address);
  const words = new Uint32Array(4);
  if (version === 0) {
    return "an IPv4 or IPv6 address or CIDR block, without host name, port, brackets, white space or leading zeros";
  }
  if (version === 4) words[3] = parseIPv4(address, 0);
  else if (!parseIPv6(address, words)) return "an address without a zone id";

  const width = version === 4 ? 32 : 128;
  const prefix = slash < 0 ? width : parsePrefixLength(rule.slice(slash + 1));
  if (prefix < 0 || prefix > width) return `a CIDR block with a prefix length from 0 to ${width}`;

  const first = wordsToBigInt(words);
  const hostBits = (1n << BigInt(width - prefix)) - 1n;
  // Masking them off would turn a typing error into a rule that nobody wrote; this also stops ::ffff:10.0.0.0/8.
  if ((first & hostBits) !== 0n) {
    return "a CIDR block whose host bits are zero; write its first address, or leave the prefix length out";
  }
  if (version === 4) return { family: "ipv4", first, last: first | hostBits };
  // A prefix length below 96 has just been refused: it would leave bits of the ffff group as host bits.
  if (isIPv4Mapped(words)) {
    const mapped = first & 0xffff_ffffn;
    return { family: "ipv4", first: mapped, last: mapped | hostBits };
  }
  return { family: "ipv6", first, last: first | hostBits };
}

function parsePrefixLength(text: string): number {
  return /^(?:0|[1-9]\d{0,2})$/.test(text) ? Number(text) : -1;
}

function wordsToBigInt(words: Uint32Array): bigint {
  return words.reduce((value, word) => (value << 32n) | BigInt(word), 0n);
}
