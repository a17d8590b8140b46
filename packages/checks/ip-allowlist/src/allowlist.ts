import { OptionError, quoteForLog } from "@countersign/core";
import {
  option,
  optionError,
  readOptions,
  type OptionOwner,
  type OptionTable,
} from "@countersign/core/internal";
import { createMatcher, parseAddress, type AddressMatcher, type AddressRange } from "./address.ts";

export interface AllowlistRules {
  /** Accept rules that together admit every address of a family, such as `0.0.0.0/0`. Default false. */
  readonly dangerouslyAllowAnyAddress?: boolean | undefined;
}

export const rulesTable: OptionTable<AllowlistRules> = {
  dangerouslyAllowAnyAddress: option.boolean(false),
};

interface ListPlace {
  readonly owner: OptionOwner;
  readonly name: string;
  readonly dangerouslyAllowAnyAddress: boolean;
}

/** Compiles addresses and CIDR blocks into one function. Throws a TypeError on an empty list or an entry that is not exactly one. */
export function compileAllowlist(entries: readonly string[], options: AllowlistRules = {}): AddressMatcher {
  const owner = "compileAllowlist";
  const rules = readOptions(owner, rulesTable, options);
  return compileRanges(readRanges(entries, owner, "entries"), { ...rules, owner, name: "entries" });
}

/** Throws an OptionError, as {@link compileAllowlist} does. */
export function readRanges(entries: unknown, owner: OptionOwner, name: string): readonly AddressRange[] {
  if (!Array.isArray(entries) || entries.length === 0) {
    throw optionError(owner, name, "an array of at least one IP address or CIDR block", entries);
  }
  return Array.from(entries, (entry: unknown, index) => readEntry(entry, owner, `${name}[${index}]`));
}

export interface ReadList {
  readonly entries: readonly string[];
  readonly isAllowed: AddressMatcher;
}

/** Compiles a list at run time; an empty one admits nobody. Throws an OptionError for what is no list of rules. */
export function compileEntries(given: unknown, place: ListPlace): ReadList {
  const isEmpty = Array.isArray(given) && given.length === 0;
  const isAllowed = isEmpty
    ? createMatcher([], [])
    : compileRanges(readRanges(given, place.owner, place.name), place);
  // A copy: the caller may change its list in place.
  return { isAllowed, entries: Array.isArray(given) ? given.map(String) : [] };
}

/** Throws an OptionError where the ranges admit a whole family. */
export function compileRanges(ranges: readonly AddressRange[], place: ListPlace): AddressMatcher {
  const ipv4 = mergeRanges(ranges, "ipv4");
  const ipv6 = mergeRanges(ranges, "ipv6");
  if (!place.dangerouslyAllowAnyAddress && (coversFamily(ipv4, 32n) || coversFamily(ipv6, 128n))) {
    const what =
      "admits every address of a family; list the sender's addresses, or set dangerouslyAllowAnyAddress: true";
    throw new OptionError(place.owner, { option: place.name, what });
  }
  return createMatcher(ipv4, ipv6);
}

function readEntry(entry: unknown, owner: OptionOwner, name: string): AddressRange {
  if (typeof entry !== "string") throw optionError(owner, name, "a string", entry);
  const range = parseRule(entry);
  if (typeof range !== "string") return range;
  throw new OptionError(owner, { option: name, what: `must be ${range}; got ${quoteForLog(entry)}` });
}

/** Reads an address or CIDR block (RFC 4632 section 3.1, RFC 4291 section 2.3); a mapped one is IPv4. Returns a refusal's reason. */
function parseRule(rule: string): AddressRange | string {
  const slash = rule.indexOf("/");
  const text = slash < 0 ? rule : rule.slice(0, slash);
  const address = parseAddress(text);
  if (address === undefined) {
    return "an IPv4 or IPv6 address or CIDR block, without host name, port, brackets, white space, leading zeros or zone id";
  }
  const { family, value } = address;
  const writtenBits = text.includes(":") ? 128 : 32;
  const prefix = slash < 0 ? writtenBits : parsePrefixLength(rule.slice(slash + 1));
  if (prefix < 0 || prefix > writtenBits) return `a CIDR block with a prefix length from 0 to ${writtenBits}`;
  const hostBits = (1n << BigInt(writtenBits - prefix)) - 1n;
  // A prefix below 96 leaves bits of the ffff of a mapped address as host bits.
  const isShort = family === "ipv4" && prefix < writtenBits - 32;
  // Masking them off would turn a typing error into a rule that nobody wrote.
  if (isShort || (value & hostBits) !== 0n) {
    return "a CIDR block whose host bits are zero; write its first address, or leave the prefix length out";
  }
  return { family, first: value, last: value | hostBits };
}

function parsePrefixLength(text: string): number {
  return /^(?:0|[1-9]\d{0,2})$/.test(text) ? Number(text) : -1;
}

function mergeRanges(ranges: readonly AddressRange[], family: AddressRange["family"]): AddressRange[] {
  const merged: AddressRange[] = [];
  const sorted = ranges.filter((range) => range.family === family);
  sorted.sort((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : 0));
  for (const range of sorted) {
    const previous = merged.at(-1);
    if (previous === undefined || range.first > previous.last + 1n) merged.push(range);
    else if (range.last > previous.last) merged[merged.length - 1] = { ...previous, last: range.last };
  }
  return merged;
}

function coversFamily(merged: readonly AddressRange[], bits: bigint): boolean {
  return merged.length === 1 && merged[0]!.last - merged[0]!.first + 1n === 1n << bits;
}
