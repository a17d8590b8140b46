import {
  encodeText,
  keyBefore,
  pageOfRows,
  parseDecision,
  seenRow,
  type SeenRow,
} from "@countersign/idempotency/store";
import { cursorBehind } from "../../dist/store-parts/list-query.js";
import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";

describe("keyBefore()", () => {
  test("begins before all keys without a cursor", () => {
    expect(keyBefore("a store", undefined)).toBe("");
  });

  test("undoes cursorBehind()", () => {
    const storedKey = fc.string({ unit: "grapheme", minLength: 1 }).filter((key) => !key.includes("\0"));
    fc.assert(
      fc.property(storedKey, (key) => {
        expect(keyBefore("a store", cursorBehind(key))).toBe(key);
      }),
    );
  });

  test.each([
    ["an empty text", ""],
    ["what is no base64url", "a b"],
    ["padding", Buffer.from("k").toString("base64")],
    ["bytes that are no UTF-8", Buffer.from([0xff, 0xfe]).toString("base64url")],
    ["a NUL, which PostgreSQL takes for an error of its own", Buffer.from("a\0").toString("base64url")],
    ["a number", 7],
    ["null", null],
  ])("refuses %s", (_case, cursor) => {
    expect(() => keyBefore("a store", cursor)).toThrow(/^a store: cursor must be/);
  });
});

describe("pageOfRows()", () => {
  const seen: SeenRow = {
    state: "done",
    token: "t",
    fence: 7,
    version: 1,
    fingerprint: "f",
    reason: "",
    recovery: "hold",
    remainingMs: 1_000,
    nowMs: 0,
  };
  const read = ({ key }: Readonly<Record<string, unknown>>) => ({
    key: String(key).toUpperCase(),
    row: seen,
  });

  test("ends with as many keys as asked for, and its cursor goes on behind the last of them", () => {
    const page = pageOfRows([{ key: "a" }, { key: "b" }, { key: "c" }], 2, read);
    expect(page.rows).toEqual([
      { key: "A", row: seen },
      { key: "B", row: seen },
    ]);
    expect(keyBefore("a store", page.cursor)).toBe("b");
  });

  test.each([
    ["no row", []],
    ["as many rows as asked for", [{ key: "a" }, { key: "b" }]],
  ])("has no cursor with %s", (_title, rows) => {
    expect(pageOfRows(rows, 2, read)).toEqual({
      rows: rows.map(({ key }) => ({ key: key.toUpperCase(), row: seen })),
      cursor: undefined,
    });
  });
});

const numbers = { fence: 7, version: 3, remainingMs: 1_000, nowMs: 1_800_000_000_000 };

describe("seenRow()", () => {
  test.each(["running", "held", "done", "free"])(
    "gives the texts of a row in state %s as they were given",
    (state) => {
      const texts = { token: "t\0", fingerprint: "\\f", reason: "\ud800" };
      const stored = {
        token: encodeText(texts.token),
        fingerprint: encodeText(texts.fingerprint),
        reason: encodeText(texts.reason),
        recovery: "rerun",
        decision: null,
      };
      expect(seenRow({ state, ...stored }, numbers)).toEqual({
        state,
        ...texts,
        recovery: "rerun",
        ...numbers,
      });
    },
  );

  test.each([["paid"], [undefined], [null], [["run"]]])("throws at the state %p", (state) => {
    const row = { state, token: "t", fingerprint: "f", reason: "", recovery: "hold" };
    expect(() => seenRow(row, numbers)).toThrow(/unknown state/);
  });

  test.each([["Rerun"], [undefined], [null]])("throws at the recovery %p", (recovery) => {
    const row = { state: "running", token: "t", fingerprint: "f", reason: "", recovery };
    expect(() => seenRow(row, numbers)).toThrow(/unknown recovery/);
  });

  test("gives an operator's decision as it was given, and its reopening", () => {
    const row = { state: "held", token: "t", fingerprint: "f", reason: "why", recovery: "hold" };
    const decision = { outcome: "released", fence: 6, at: 1_800_000_000_000, by: "a\0", reason: "\\why" };
    const reopened = { at: 1_800_000_000_001, note: "\ud800" };
    for (const given of [decision, { ...decision, reopened }]) {
      expect(seenRow({ ...row, decision: JSON.stringify(given) }, numbers).decision).toEqual(given);
    }
  });
});

describe("parseDecision()", () => {
  const decision = { outcome: "done", fence: 6, at: 1, reason: "" };

  test.each([
    ["no JSON", "{"],
    ["no text", decision],
    ["an unknown outcome", JSON.stringify({ ...decision, outcome: "paid" })],
    ["a fence that is no integer", JSON.stringify({ ...decision, fence: "6" })],
    ["no reason", JSON.stringify({ ...decision, reason: undefined })],
    ["no time", JSON.stringify({ ...decision, at: undefined })],
    ["a note that is no text", JSON.stringify({ ...decision, note: 1 })],
    ["half of a reopening", JSON.stringify({ ...decision, reopened: { by: "a" } })],
    ["null", "null"],
  ])("throws at %s", (_title, stored) => {
    expect(() => parseDecision(stored)).toThrow(/unknown decision/);
  });
});
