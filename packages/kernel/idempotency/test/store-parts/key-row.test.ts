import { encodeText, storedRecord } from "@countersign/idempotency/store";
import { describe, expect, test } from "@jest/globals";

const counts = { fence: 7, remainingMs: 1_000 };
const numbers = { ...counts, integerOf: Number };

describe("storedRecord()", () => {
  test.each(["run", "held", "done", "free"])(
    "gives the texts of a row in state %s as they were given",
    (state) => {
      const texts = { token: "t\0", fingerprint: "\\f", reason: "\ud800" };
      const stored = {
        token: encodeText(texts.token),
        fingerprint: encodeText(texts.fingerprint),
        reason: encodeText(texts.reason),
      };
      expect(storedRecord({ state, ...stored }, numbers)).toEqual({ state, ...texts, ...counts });
    },
  );

  test.each([["paid"], [undefined], [null], [["run"]]])("throws at the state %p", (state) => {
    const row = { state, token: "t", fingerprint: "f", reason: "" };
    expect(() => storedRecord(row, numbers)).toThrow(/unknown state/);
  });

  test("gives an operator's decision as it was given, and its reopening", () => {
    const row = { state: "held", token: "t", fingerprint: "f", reason: "why" };
    const decided = {
      decision: "released",
      decision_fence: "6",
      decision_at: "1800000000000",
      decision_by: encodeText("a\0"),
      decision_note: null,
      decision_reason: encodeText("\\why"),
      reopened_at: null,
      reopened_by: null,
      reopened_note: null,
    };
    const decision = { outcome: "released", fence: 6, at: 1_800_000_000_000, by: "a\0", reason: "\\why" };
    expect(storedRecord({ ...row, ...decided }, numbers).decision).toEqual(decision);
    const reopening = { reopened_at: 1_800_000_000_001, reopened_note: encodeText("\ud800") };
    expect(storedRecord({ ...row, ...decided, ...reopening }, numbers).decision).toEqual({
      ...decision,
      reopened: { at: 1_800_000_000_001, note: "\ud800" },
    });
    expect(storedRecord({ ...row, decision: null }, numbers).decision).toBeUndefined();
    expect(() => storedRecord({ ...row, decision: "paid" }, numbers)).toThrow(/unknown decision/);
  });
});
