import { createSecretKey } from "node:crypto";
import { types } from "node:util";
import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { fuzzRuns } from "@countersign/test-support/runs/share.ts";
import { readRecord, writeRecord, type AnswerKey, type KeptAnswer } from "../src/answer-record.ts";

// TEST KEYS.
const keyOf = (id: string, byte: number): AnswerKey => ({ id, key: createSecretKey(Buffer.alloc(32, byte)) });
const current = keyOf("2026-11", 1);
const old = keyOf("2026-10", 2);
const place = { key: "client:key-1", token: "attempt-1" };
const answer: KeptAnswer = {
  status: 201,
  headers: [
    ["content-type", "application/json; charset=utf-8"],
    ["link", "</a>"],
    ["link", "</b>"],
  ],
  body: Buffer.from('{"id":"r_1","name":"Müller"}'),
};

describe.each([
  ["plain", []],
  ["encrypted", [current, old]],
])("a record that is %s", (_name, keys) => {
  test("is read as it was written", () => {
    expect(readRecord(writeRecord(answer, place, keys), place, keys)).toEqual(answer);
    const empty = { status: 204, headers: [], body: Buffer.alloc(0) };
    expect(readRecord(writeRecord(empty, place, keys), place, keys)).toEqual(empty);
  });

  test("is none of another key", () => {
    const record = writeRecord(answer, place, keys);
    expect(() => readRecord(record, { ...place, key: "client:key-2" }, keys)).toThrow();
  });

  test("any bytes are an answer or an error", () => {
    const record = writeRecord(answer, place, keys);
    const anything = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc
        .tuple(fc.nat(record.length - 1), fc.integer({ min: 1, max: 255 }), fc.nat(record.length))
        .map(([at, change, end]) => {
          const changed = Buffer.from(record);
          changed[at] = (changed[at] ?? 0) ^ change;
          return changed.subarray(0, Math.max(end, 1));
        }),
    );
    fc.assert(
      fc.property(anything, (bytes) => {
        let read: KeptAnswer;
        try {
          read = readRecord(bytes, place, keys);
        } catch (error) {
          expect(types.isNativeError(error)).toBe(true);
          return;
        }
        // Nobody without the key makes one that is read.
        expect(keys).toEqual([]);
        expect(read.status).toBeGreaterThanOrEqual(200);
      }),
      fuzzRuns(2000),
    );
  });
});

test.each([
  ["a line feed in a value", [["x-a", "a\nb"]]],
  ["a value beyond Latin-1", [["x-a", "\u{1f3e6}"]]],
  ["a name that is none", [["x a", "b"]]],
  ["no name", [["", "b"]]],
  ["a value that is no text", [["x-a", 1]]],
])("a record with %s is none", (_name, headers) => {
  const record = writeRecord({ ...answer, headers: headers as never }, place, []);
  expect(() => readRecord(record, place, [])).toThrow(/of none/);
});

test.each([100, 199, 206, 302, 409, 500, 200.5])("a record with status %s is none", (status) => {
  expect(() => readRecord(writeRecord({ ...answer, status }, place, []), place, [])).toThrow(/of none/);
});

describe("an encrypted record", () => {
  test("shows nothing of the answer, and is another one each time", () => {
    const records = [1, 2].map(() => writeRecord(answer, place, [current]));
    expect(records[0]).not.toEqual(records[1]);
    for (const text of ["r_1", "application/json", "key-1"]) expect(records[0]?.includes(text)).toBe(false);
  });

  test("is read under an older key, and not without it", () => {
    const record = writeRecord(answer, place, [old]);
    expect(readRecord(record, place, [current, old])).toEqual(answer);
    expect(() => readRecord(record, place, [current])).toThrow(/under a key that is not given/);
    expect(() => readRecord(record, place, [keyOf(old.id, 9)])).toThrow();
  });

  test("is bound to its attempt, and to the name of its key", () => {
    const record = writeRecord(answer, place, [current]);
    expect(() => readRecord(record, { ...place, token: "attempt-2" }, [current])).toThrow();
    const renamed = Buffer.from(record);
    renamed.write("2026-12", 2);
    expect(() => readRecord(renamed, place, [{ ...current, id: "2026-12" }])).toThrow();
  });

  test("is not replaced by a plain one", () => {
    const forged = writeRecord({ ...answer, body: Buffer.from("forged") }, place, []);
    expect(() => readRecord(forged, place, [current])).toThrow(/not encrypted/);
    expect(() => readRecord(writeRecord(answer, place, [current]), place, [])).toThrow(/no form/);
  });

  test.each(Array.from({ length: writeRecord(answer, place, [current]).length }, (_, at) => at))(
    "is refused with its byte %i changed",
    (at) => {
      const record = writeRecord(answer, place, [current]);
      record[at] = (record[at] ?? 0) ^ 1;
      expect(() => readRecord(record, place, [current, old])).toThrow();
    },
  );
});
