import {
  option,
  OptionError,
  optionError,
  quoteForLog,
  readOptions,
  type OptionOwner,
  type OptionTable,
} from "@countersign/core";
import { parseAddress, parseRule, type AddressRange } from "./address.ts";

/** Whether a client address is in the list; false for anything that is no address. */
export type AddressMatcher = (address: string | undefined) => boolean;

/** Options of {@link compileAllowlist}. */
export interface AllowlistRules {
  /** Accept rules that together admit every address of a family, such as `0.0.0.0/0`. Default false. */
  readonly dangerouslyAllowAnyAddress?: boolean | undefined;
}

export const rulesTable: OptionTable<AllowlistRules> = {
  dangerouslyAllowAnyAddress: option.boolean(false),
};

/**
 * Compiles addresses and CIDR blocks into one function: a binary search over sorted, merged ranges, one list per family.
 * Throws a TypeError on an empty list and on any entry that is not exactly an address or a block.
 */
export function compileAllowlist(entries: readonly string[], options: AllowlistRules = {}): AddressMatcher {
  const owner = "compileAllowlist";
  const rules = readOptions(owner, rulesTable, options);
  return compileRanges(readRanges(entries, owner, "entries"), { ...rules, owner, name: "entries" });
}

/** Reads the entries of the option `name`. Throws an OptionError, as {@link compileAllowlist} does. */
export function readRanges(entries: unknown, owner: OptionOwner, name: string): readonly AddressRange[] {
  if (!Array.isArray(entries) || entries.length === 0) {
    throw optionError(owner, name, "an array of at least one IP address or CIDR block", entries);
  }
  return Array.from(entries, (entry: unknown, index) => readEntry(entry, owner, `${name}[${index}]`));
}

/** Compiles what {@link readRanges} read of the option `name`. Throws an OptionError where they admit a whole family. */
export function compileRanges(
  ranges: readonly AddressRange[],
  {
    owner,
    name,
    dangerouslyAllowAnyAddress,
  }: {
    readonly owner: OptionOwner;
    readonly name: string;
    readonly dangerouslyAllowAnyAddress: boolean;
  },
): AddressMatcher {
  const ipv4 = mergeRanges(ranges, "ipv4");
  const ipv6 = mergeRanges(ranges, "ipv6");
  if (!dangerouslyAllowAnyAddress && (coversFamily(ipv4, 32n) || coversFamily(ipv6, 128n))) {
    const what =
      "admits every address of a family; list the sender's addresses, or set dangerouslyAllowAnyAddress: true";
    throw new OptionError(owner, { option: name, what });
  }
  return createMatcher(ipv4, ipv6);
}

function readEntry(entry: unknown, owner: OptionOwner, name: string): AddressRange {
  if (typeof entry !== "string") throw optionError(owner, name, "a string", entry);
  const range = parseRule(entry);
  if (typeof range !== "string") return range;
  throw new OptionError(owner, { option: name, what: `must be ${range}; got ${quoteForLog(entry)}` });
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

function createMatcher(ipv4: readonly AddressRange[], ipv6: readonly AddressRange[]): AddressMatcher {
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
