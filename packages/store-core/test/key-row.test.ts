import { encodeText, storedRecord } from "@countersign/store-core";
import { describe, expect, test } from "@jest/globals";

const numbers = { fence: 7, remainingMs: 1_000 };

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
      expect(storedRecord({ state, ...stored }, numbers)).toEqual({ state, ...texts, ...numbers });
    },
  );

  test.each([["paid"], [undefined], [null], [["run"]]])("throws at the state %p", (state) => {
    const row = { state, token: "t", fingerprint: "f", reason: "" };
    expect(() => storedRecord(row, numbers)).toThrow(/unknown state/);
  });
});
