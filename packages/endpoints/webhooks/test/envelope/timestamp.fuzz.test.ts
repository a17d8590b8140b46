import { isGuardError } from "@countersign/core";
import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { parseTimestamp } from "@countersign/webhooks";
import type { WebhookTimestamp } from "../../dist/envelope/timestamp.js";
import { fuzzRuns } from "@countersign/test-support/runs/fuzz-runs.ts";

const secondsInFourDigitYears = { min: -62_167_219_200, max: 253_402_300_799 };

/** The nanoseconds, and one of the ways to write them: trailing zeros of the fraction may be there or not. */
const written = fc
  .record({
    seconds: fc.oneof(
      fc.integer(secondsInFourDigitYears),
      fc.integer({ min: 1_704_164_645, max: 1_704_164_647 }),
    ),
    fraction: fc.string({ unit: fc.constantFrom("0", "1", "5", "9"), maxLength: 9 }),
  })
  .map(({ seconds, fraction }) => ({
    nanoseconds: BigInt(seconds) * 1_000_000_000n + BigInt(fraction.padEnd(9, "0")),
    raw: `${new Date(seconds * 1000).toISOString().slice(0, 19)}${fraction === "" ? "" : `.${fraction}`}Z`,
  }));

describe("a timestamp", () => {
  test("is the nanoseconds that were written, and its date the millisecond below", () => {
    fc.assert(
      fc.property(written, ({ nanoseconds, raw }) => {
        const timestamp = parseTimestamp(raw);
        expect(timestamp.epochNanoseconds).toBe(nanoseconds);
        const below = nanoseconds - BigInt(timestamp.date.getTime()) * 1_000_000n;
        expect(below >= 0n && below < 1_000_000n).toBe(true);
      }),
      fuzzRuns(1000),
    );
  });
});

describe("parseTimestamp", () => {
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
        expect(accepted(raw) !== undefined).toBe(inGrammar);
      }),
      fuzzRuns(3000),
    );
  });
});

function daysOf(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}

function accepted(raw: string): WebhookTimestamp | undefined {
  try {
    return parseTimestamp(raw);
  } catch (error) {
    if (isGuardError(error) && error.status === 400 && error.code === "timestamp-invalid") return undefined;
    throw error;
  }
}
