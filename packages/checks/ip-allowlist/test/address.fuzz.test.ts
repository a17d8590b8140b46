import { isIP } from "node:net";
import { expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { parseAddress } from "../src/address.ts";
import { fuzzRuns } from "@countersign/test-support/runs/fuzz-runs.ts";

const words = new Uint32Array(4);

function versionOf(text: string): number {
  const family = parseAddress(text, words);
  // An IPv4-mapped address is IPv4 to us and IPv6 to Node.
  return family === "unknown" ? 0 : text.includes(":") ? 6 : 4;
}

const nearAddress = fc
  .array(
    fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(":", ".", "::", "0", "1", "255", "ffff", "::ffff:") },
      { weight: 2, arbitrary: fc.integer({ min: 0, max: 0xffff }).map((group) => group.toString(16)) },
      { weight: 2, arbitrary: fc.integer({ min: 0, max: 300 }).map(String) },
      { weight: 1, arbitrary: fc.constantFrom("g", "/", " ", "-", "[", "]", "\n", "٣", "00", "01") },
    ),
    { maxLength: 17 },
  )
  .map((parts) => parts.join(""));

test("calls an address what Node calls an address", () => {
  const samples = fc.oneof(nearAddress, fc.ipV4(), fc.ipV6(), fc.ipV4Extended(), fc.string());
  fc.assert(
    fc.property(samples, (text) => {
      fc.pre(!text.includes("%"));
      expect(versionOf(text)).toBe(isIP(text));
    }),
    fuzzRuns(20_000),
  );
});

test("calls an address with a changed character what Node calls it", () => {
  const changes = fc.tuple(
    fc.oneof(fc.ipV4(), fc.ipV6()),
    fc.nat(),
    fc.constantFrom("", ":", ".", "0", "f", "::", "9", "x"),
    fc.nat({ max: 2 }),
  );
  fc.assert(
    fc.property(changes, ([address, at, text, removed]) => {
      const index = at % (address.length + 1);
      const changed = address.slice(0, index) + text + address.slice(index + removed);
      expect(versionOf(changed)).toBe(isIP(changed));
    }),
    fuzzRuns(20_000),
  );
});

test("reads every spelling of an IPv4 address as the same number", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 0xffff_ffff }), (value) => {
      const octets = [value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255].join(".");
      const hex = `${(value >>> 16).toString(16)}:${(value & 0xffff).toString(16)}`;
      for (const text of [octets, `::ffff:${octets}`, `::FFFF:${hex}`, `0:0:0:0:0:ffff:${octets}`]) {
        expect(parseAddress(text, words)).toBe("ipv4");
        expect(words[0]).toBe(value);
      }
    }),
    fuzzRuns(2000),
  );
});
