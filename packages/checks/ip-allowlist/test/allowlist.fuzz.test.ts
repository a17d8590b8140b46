import { BlockList } from "node:net";
import { expect, test } from "@jest/globals";
import { compileAllowlist } from "@countersign/ip-allowlist";
import * as fc from "fast-check";
import { fuzzRuns } from "@countersign/test-support/runs/fuzz-runs.ts";

interface Block {
  readonly first: bigint;
  readonly prefix: number;
}

const widths = { ipv4: 32, ipv6: 128 } as const;
type Family = keyof typeof widths;

/** Addresses crowd around a few places, so that rules overlap, touch and are hit. */
function addressOf(family: Family): fc.Arbitrary<bigint> {
  const width = BigInt(widths[family]);
  const last = (1n << width) - 1n;
  const anchors = family === "ipv4" ? [0n, 0x0a00_0000n, last] : [0n, 0x2001_0db8n << 96n, last];
  const near = fc
    .tuple(
      fc.constantFrom(...anchors),
      fc.bigInt({ min: -600n, max: 600n }),
      fc.nat({ max: widths[family] - 10 }),
    )
    .map(([anchor, offset, shift]) => BigInt.asUintN(Number(width), anchor + (offset << BigInt(shift))));
  return fc.oneof(
    { weight: 5, arbitrary: near },
    { weight: 1, arbitrary: fc.bigInt({ min: 0n, max: last }) },
  );
}

function blockOf(family: Family): fc.Arbitrary<Block> {
  const width = widths[family];
  return fc.tuple(addressOf(family), fc.integer({ min: 1, max: width })).map(([address, prefix]) => {
    const hostBits = BigInt(width - prefix);
    return { first: (address >> hostBits) << hostBits, prefix };
  });
}

function textOf(family: Family, address: bigint): string {
  if (family === "ipv4") {
    return [24n, 16n, 8n, 0n].map((shift) => String((address >> shift) & 255n)).join(".");
  }
  return Array.from({ length: 8 }, (_, group) =>
    ((address >> BigInt(16 * (7 - group))) & 0xffffn).toString(16),
  ).join(":");
}

function isMapped(family: Family, address: bigint): boolean {
  return family === "ipv6" && address >> 32n === 0xffffn;
}

function contains(family: Family, block: Block, address: bigint): boolean {
  const hostBits = BigInt(widths[family] - block.prefix);
  return address >> hostBits === block.first >> hostBits;
}

const families: readonly Family[] = ["ipv4", "ipv6"];

test.each(families)("agrees with a naive comparison and with net.BlockList over %s", (family) => {
  const samples = fc.tuple(
    fc.array(blockOf(family), { minLength: 1, maxLength: 12 }),
    fc.array(addressOf(family), { minLength: 1, maxLength: 25 }),
  );
  fc.assert(
    fc.property(samples, ([blocks, addresses]) => {
      const rules = blocks.map((block) => `${textOf(family, block.first)}/${block.prefix}`);
      const isAllowed = compileAllowlist(rules, { dangerouslyAllowAnyAddress: true });
      const list = new BlockList();
      for (const { first, prefix } of blocks) list.addSubnet(textOf(family, first), prefix, family);
      const edges = blocks.flatMap(({ first, prefix }) => {
        const size = 1n << BigInt(widths[family] - prefix);
        return [first - 1n, first, first + size - 1n, first + size];
      });
      for (const edge of [...addresses, ...edges]) {
        const address = BigInt.asUintN(widths[family], edge);
        // Node's list crosses the families at the mapped block; the mapped block has its own test.
        if (isMapped(family, address)) continue;
        const text = textOf(family, address);
        const naive = blocks.some((block) => contains(family, block, address));
        expect([text, isAllowed(text)]).toEqual([text, naive]);
        expect([text, list.check(text, family)]).toEqual([text, naive]);
      }
    }),
    fuzzRuns(300),
  );
});

test("never lets a rule of one family admit a client of the other", () => {
  fc.assert(
    fc.property(
      fc.array(blockOf("ipv6"), { minLength: 1, maxLength: 8 }),
      fc.array(blockOf("ipv4"), { minLength: 1, maxLength: 8 }),
      addressOf("ipv4"),
      addressOf("ipv6"),
      (ipv6, ipv4, address4, address6) => {
        const ipv6Rules = ipv6
          .filter(({ first, prefix }) => !(prefix >= 96 && isMapped("ipv6", first)))
          .map(({ first, prefix }) => `${textOf("ipv6", first)}/${prefix}`);
        const text4 = textOf("ipv4", address4);
        if (ipv6Rules.length > 0) {
          const isAllowed = compileAllowlist(ipv6Rules, { dangerouslyAllowAnyAddress: true });
          expect([isAllowed(text4), isAllowed(`::ffff:${text4}`)]).toEqual([false, false]);
        }
        fc.pre(!isMapped("ipv6", address6));
        const ipv4Rules = ipv4.map(({ first, prefix }) => `${textOf("ipv4", first)}/${prefix}`);
        const isAllowed = compileAllowlist(ipv4Rules, { dangerouslyAllowAnyAddress: true });
        expect(isAllowed(textOf("ipv6", address6))).toBe(false);
      },
    ),
    fuzzRuns(300),
  );
});

test("treats an IPv4 block and its IPv4-mapped spelling alike", () => {
  fc.assert(
    fc.property(blockOf("ipv4"), addressOf("ipv4"), ({ first, prefix }, address) => {
      const text = textOf("ipv4", address);
      const plain = compileAllowlist([`${textOf("ipv4", first)}/${prefix}`]);
      const mapped = compileAllowlist([`::ffff:${textOf("ipv4", first)}/${prefix + 96}`]);
      expect(mapped(text)).toBe(plain(text));
      expect(plain(`::ffff:${text}`)).toBe(plain(text));
    }),
    fuzzRuns(500),
  );
});

test("compiles any text or throws a TypeError", () => {
  const rule = fc.oneof(
    fc.string(),
    fc.tuple(fc.oneof(fc.ipV4(), fc.ipV6(), fc.string()), fc.string()).map((parts) => parts.join("/")),
    fc
      .tuple(fc.oneof(fc.ipV4(), fc.ipV6()), fc.integer({ min: -1, max: 130 }))
      .map((parts) => parts.join("/")),
  );
  fc.assert(
    fc.property(rule, fc.string(), (entry, client) => {
      let isAllowed;
      try {
        isAllowed = compileAllowlist([entry]);
      } catch (error) {
        expect(error).toBeInstanceOf(TypeError);
        return;
      }
      expect(isAllowed(entry.split("/")[0])).toBe(true);
      expect(typeof isAllowed(client)).toBe("boolean");
    }),
    fuzzRuns(3000),
  );
});
