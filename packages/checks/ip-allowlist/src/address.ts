import { isIP } from "node:net";

/** The family of an address; `unknown` is text that is no address. */
export type AddressFamily = "ipv4" | "ipv6" | "unknown";

const dot = 0x2e;
const colon = 0x3a;
const digitZero = 0x30;
/** `ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255`, the longest form (RFC 4291 section 2.2). */
const maxLength = 45;

// Parsing is synchronous, so one scratch serves every call and a request allocates nothing.
const groups = new Uint16Array(8);

/**
 * Reads the address of a client into `words`: an IPv4 address as one number in `words[0]`, an IPv6 address as four.
 * An IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2) is IPv4. Ports, brackets, zone ids and white space are no address.
 */
export function parseAddress(text: string, words: Uint32Array): AddressFamily {
  const address = parseIPv4(text, 0);
  if (address >= 0) {
    words[0] = address;
    return "ipv4";
  }
  if (!parseIPv6(text, words)) return "unknown";
  if (!isIPv4Mapped(words)) return "ipv6";
  words[0] = words[3]!;
  return "ipv4";
}

/** The dotted decimal address that fills `text` from `start` on, as an unsigned 32-bit number; -1 when it is none. */
function parseIPv4(text: string, start: number): number {
  const { length } = text;
  if (length - start < 7 || length - start > 15) return -1;
  let address = 0;
  let index = start;
  for (let octets = 1; octets <= 4; octets += 1) {
    const first = index;
    let octet = 0;
    for (; index < length; index += 1) {
      const digit = text.charCodeAt(index) - digitZero;
      if (digit < 0 || digit > 9) break;
      octet = octet * 10 + digit;
    }
    // A leading zero is octal to some parsers and decimal to others.
    const leadingZero = index - first > 1 && text.charCodeAt(first) === digitZero;
    if (index === first || octet > 255 || leadingZero) return -1;
    address = address * 256 + octet;
    if (octets < 4) {
      if (text.charCodeAt(index) !== dot) return -1;
      index += 1;
    }
  }
  return index === length ? address : -1;
}

/** Reads an IPv6 address (RFC 4291 section 2.2) into four words; false when `text` is none. */
function parseIPv6(text: string, words: Uint32Array): boolean {
  const { length } = text;
  if (length < 2 || length > maxLength) return false;
  let count = 0;
  let gap = -1;
  let index = 0;
  if (text.charCodeAt(0) === colon) {
    if (text.charCodeAt(1) !== colon) return false;
    gap = 0;
    index = 2;
  }
  while (index < length) {
    const end = endOfGroup(text, index);
    if (text.charCodeAt(end) === dot) {
      const embedded = count > 6 ? -1 : parseIPv4(text, index);
      if (embedded < 0) return false;
      groups[count] = embedded >>> 16;
      groups[count + 1] = embedded & 0xffff;
      count += 2;
      break;
    }
    if (end === index || count === 8) return false;
    groups[count] = parseGroup(text, index, end);
    count += 1;
    index = end;
    if (index === length) break;
    if (text.charCodeAt(index) !== colon) return false;
    index += 1;
    if (text.charCodeAt(index) === colon) {
      if (gap >= 0) return false;
      gap = count;
      index += 1;
    } else if (index === length) {
      return false;
    }
  }
  // `::` stands for at least one group.
  if (gap < 0 ? count !== 8 : count > 7) return false;
  fillWords(words, count, gap);
  return true;
}

/** Whether the words are those of `::ffff:0:0/96`. */
function isIPv4Mapped(words: Uint32Array): boolean {
  return words[0] === 0 && words[1] === 0 && words[2] === 0xffff;
}

function endOfGroup(text: string, start: number): number {
  let index = start;
  while (index - start < 4 && hexDigit(text.charCodeAt(index)) >= 0) index += 1;
  return index;
}

function parseGroup(text: string, start: number, end: number): number {
  let value = 0;
  for (let index = start; index < end; index += 1) value = value * 16 + hexDigit(text.charCodeAt(index));
  return value;
}

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

function fillWords(words: Uint32Array, count: number, gap: number): void {
  const missing = 8 - count;
  for (let word = 0; word < 4; word += 1) {
    const high = groupAt(word * 2, gap, missing);
    words[word] = high * 0x1_0000 + groupAt(word * 2 + 1, gap, missing);
  }
}

function groupAt(position: number, gap: number, missing: number): number {
  if (gap < 0 || position < gap) return groups[position]!;
  return position < gap + missing ? 0 : groups[position - missing]!;
}

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

/** Whether a client address is in the list; false for anything that is no address. */
export type AddressMatcher = (address: string | undefined) => boolean;

/** Matches by a binary search in each family's list, which is sorted and merged. */
export function createMatcher(ipv4: readonly AddressRange[], ipv6: readonly AddressRange[]): AddressMatcher {
  const firstIPv4 = packRanges(ipv4, 1, "first");
  const lastIPv4 = packRanges(ipv4, 1, "last");
  const firstIPv6 = packRanges(ipv6, 4, "first");
  const lastIPv6 = packRanges(ipv6, 4, "last");
  const words = new Uint32Array(4);

  return function isAllowed(address) {
    if (typeof address !== "string") return false;
    switch (parseAddress(address, words)) {
      case "ipv4": {
        const at = lastAtMost(firstIPv4, 1, words);
        return at >= 0 && compareWords(words, lastIPv4, at, 1) <= 0;
      }
      case "ipv6": {
        const at = lastAtMost(firstIPv6, 4, words);
        return at >= 0 && compareWords(words, lastIPv6, at, 4) <= 0;
      }
      default:
        return false;
    }
  };
}

function packRanges(ranges: readonly AddressRange[], size: number, end: "first" | "last"): Uint32Array {
  const packed = new Uint32Array(ranges.length * size);
  ranges.forEach((range, index) => {
    for (let word = 0; word < size; word += 1) {
      packed[index * size + word] = Number((range[end] >> BigInt(32 * (size - 1 - word))) & 0xffff_ffffn);
    }
  });
  return packed;
}

/** The offset of the last entry of the sorted `list` that is not above `words`; negative when all are. */
function lastAtMost(list: Uint32Array, size: number, words: Uint32Array): number {
  let low = 0;
  let high = list.length / size;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareWords(words, list, middle * size, size) >= 0) low = middle + 1;
    else high = middle;
  }
  return (low - 1) * size;
}

function compareWords(words: Uint32Array, list: Uint32Array, offset: number, size: number): number {
  for (let word = 0; word < size; word += 1) {
    const difference = words[word]! - list[offset + word]!;
    if (difference !== 0) return difference;
  }
  return 0;
}
