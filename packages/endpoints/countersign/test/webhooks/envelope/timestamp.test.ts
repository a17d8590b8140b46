import { isGuardError } from "@countersign/core";
import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { compareTimestamps, parseTimestamp } from "countersign/webhooks";
import { fuzzRuns } from "@countersign/test-support/runs/share.ts";

function codeOf(raw: unknown): string {
  try {
    parseTimestamp(raw as string);
    return "accepted";
  } catch (error) {
    return isGuardError(error) ? `${error.status} ${error.code}` : "unexpected error";
  }
}

describe("parseTimestamp", () => {
  test.each([
    ["no fraction", "2024-01-02T03:04:05Z", "2024-01-02T03:04:05.000Z", 1_704_164_645_000_000_000n],
    ["one digit", "2024-01-02T03:04:05.1Z", "2024-01-02T03:04:05.100Z", 1_704_164_645_100_000_000n],
    ["nine digits", "2024-01-02T03:04:05.123456789Z", "2024-01-02T03:04:05.123Z", 1_704_164_645_123_456_789n],
    [
      "just before a second",
      "2024-01-02T03:04:05.999999999Z",
      "2024-01-02T03:04:05.999Z",
      1_704_164_645_999_999_999n,
    ],
    ["less than a millisecond", "1970-01-01T00:00:00.000000001Z", "1970-01-01T00:00:00.000Z", 1n],
    ["before 1970, rounded down", "1969-12-31T23:59:59.9999Z", "1969-12-31T23:59:59.999Z", -100_000n],
    ["the leap day of 2000", "2000-02-29T00:00:00Z", "2000-02-29T00:00:00.000Z", 951_782_400_000_000_000n],
    ["year 0, a leap year", "0000-02-29T00:00:00Z", "0000-02-29T00:00:00.000Z", -62_162_121_600_000_000_000n],
    ["year 99", "0099-12-31T00:00:00Z", "0099-12-31T00:00:00.000Z", -59_011_545_600_000_000_000n],
    ["year 9999", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.000Z", 253_402_300_799_000_000_000n],
  ])("reads %s", (_title, raw, date, epochNanoseconds) => {
    const timestamp = parseTimestamp(raw);
    expect(timestamp.raw).toBe(raw);
    expect(timestamp.date.toISOString()).toBe(date);
    expect(timestamp.epochNanoseconds).toBe(epochNanoseconds);
  });

  test.each([
    ["an empty string", ""],
    ["no zone", "2024-01-02T03:04:05"],
    ["an offset", "2024-01-02T03:04:05+00:00"],
    ["a small z", "2024-01-02T03:04:05z"],
    ["a small t", "2024-01-02t03:04:05Z"],
    ["a space for T", "2024-01-02 03:04:05Z"],
    ["a point without digits", "2024-01-02T03:04:05.Z"],
    ["a comma", "2024-01-02T03:04:05,5Z"],
    ["ten fraction digits", "2024-01-02T03:04:05.1234567890Z"],
    ["white space before", " 2024-01-02T03:04:05Z"],
    ["a line break behind", "2024-01-02T03:04:05Z\n"],
    ["a five-digit year", "12024-01-02T03:04:05Z"],
    ["a signed year", "+002024-01-02T03:04:05Z"],
    ["digits that are not ASCII", "٢٠٢٤-01-02T03:04:05Z"],
    ["month 0", "2024-00-02T03:04:05Z"],
    ["month 13", "2024-13-02T03:04:05Z"],
    ["day 0", "2024-01-00T03:04:05Z"],
    ["day 32", "2024-01-32T03:04:05Z"],
    ["the 31st of April", "2024-04-31T03:04:05Z"],
    ["a leap day in 2023", "2023-02-29T03:04:05Z"],
    ["a leap day in 1900", "1900-02-29T03:04:05Z"],
    ["hour 24", "2024-01-02T24:00:00Z"],
    ["minute 60", "2024-01-02T03:60:05Z"],
    ["a leap second", "2016-12-31T23:59:60Z"],
    ["a number", 1_704_164_645],
    ["an array that prints like one", ["2024-01-02T03:04:05Z"]],
    ["undefined", undefined],
  ])("refuses %s", (_title, raw) => {
    expect(codeOf(raw)).toBe("400 timestamp-invalid");
  });

  test("quotes what it refuses, in one line and cut", () => {
    const hostile = `2024\n${"9".repeat(1000)}`;
    expect(() => parseTimestamp(hostile)).toThrow(
      /^the timestamp "2024\\u000a9+"\.\.\. \(1005 characters\) must be/,
    );
  });

  test("gives the text again in JSON, where a bigint would throw", () => {
    const raw = "2024-01-02T03:04:05.1Z";
    expect(JSON.stringify({ at: parseTimestamp(raw) })).toBe(`{"at":"${raw}"}`);
  });
});

describe("any text that is nearly a timestamp", () => {
  const digits = (length: number, ...hints: string[]): fc.Arbitrary<string> =>
    fc.oneof(
      fc.constantFrom(...hints),
      fc.string({ unit: fc.constantFrom(..."0123456789".split("")), minLength: length, maxLength: length }),
    );
  const almost = fc
    .tuple(
      digits(4, "2023", "2024", "1900", "2000", "0000"),
      digits(2, "02", "12", "13"),
      digits(2, "28", "29", "30", "31"),
      digits(2, "00", "23", "24"),
      digits(2, "59", "60"),
      digits(2, "59", "60"),
      fc.oneof(
        fc.constant(""),
        fc
          .string({ unit: fc.constantFrom(..."0123456789".split("")), maxLength: 11 })
          .map((text) => `.${text}`),
      ),
      fc.constantFrom("Z", "z", "", "+00:00"),
    )
    .map(([year, month, day, hour, minute, second, fraction, zone]) => ({
      raw: `${year}-${month}-${day}T${hour}:${minute}:${second}${fraction}${zone}`,
      inGrammar:
        Number(month) >= 1 &&
        Number(month) <= 12 &&
        Number(day) >= 1 &&
        Number(day) <= daysOf(Number(year), Number(month)) &&
        Number(hour) < 24 &&
        Number(minute) < 60 &&
        Number(second) < 60 &&
        fraction !== "." &&
        fraction.length <= 10 &&
        zone === "Z",
    }));

  test("accepts exactly the grammar", () => {
    fc.assert(
      fc.property(almost, ({ raw, inGrammar }) => {
        expect(codeOf(raw)).toBe(inGrammar ? "accepted" : "400 timestamp-invalid");
      }),
      fuzzRuns(3000),
    );
  });
});

function daysOf(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}

describe("compareTimestamps", () => {
  test.each([
    ["where the strings order wrongly", "2024-01-02T03:04:05.5Z", "2024-01-02T03:04:05Z", 1],
    ["below the millisecond", "2024-01-02T03:04:05.000000001Z", "2024-01-02T03:04:05.000000002Z", -1],
    ["with trailing zeros as equal", "2024-01-02T03:04:05.1Z", "2024-01-02T03:04:05.100000000Z", 0],
  ])("orders %s", (_title, a, b, order) => {
    expect(compareTimestamps(parseTimestamp(a), parseTimestamp(b))).toBe(order);
    expect(compareTimestamps(parseTimestamp(b), parseTimestamp(a))).toBe(order === 0 ? 0 : -order);
  });
});
