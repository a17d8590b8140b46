import {
  assertDecision,
  assertDuration,
  assertOpen,
  assertOutcome,
  assertText,
  assertTransaction,
} from "@countersign/idempotency/store";
import { describe, expect, test } from "@jest/globals";

describe("assertText()", () => {
  test.each([
    ["one character", "k"],
    ["512 characters", "k".repeat(512)],
    ["a NUL", "\0"],
  ])("takes %s", (_case, text) => {
    expect(() => assertText("a store", "key", text)).not.toThrow();
  });

  test.each([
    ["nothing", ""],
    ["513 characters", "k".repeat(513)],
    ["undefined", undefined],
    ["a number", 7],
    ["an array", ["k"]],
    ["an object with a length", { length: 3 }],
    ["a String object", Object("k")],
  ])("refuses %s and names store and argument", (_case, text) => {
    expect(() => assertText("a store", "key", text)).toThrow(TypeError);
    expect(() => assertText("a store", "key", text)).toThrow(/^a store: key must be/);
  });
});

describe("assertTransaction()", () => {
  const shape = {
    needs: "the client",
    has: ["query", "release"],
    lacks: { totalCount: "a pool" },
    page: "https://pages.example/",
  };

  test("takes an object with each function, its own or inherited", () => {
    class Client {
      query(): void {}
      release(): void {}
    }
    expect(() => assertTransaction("a store", new Client(), shape)).not.toThrow();
  });

  test.each([
    ["undefined", undefined, "got undefined"],
    ["null", null, "got null"],
    ["a text", "tx", "got a string"],
    ["a function", () => {}, "got a function"],
    ["an object without a function", { query() {} }, "got an object that has no function release"],
    ["what is often given in its place", { query() {}, totalCount: 0 }, "got a pool"],
  ])("says of %s what is needed, and where that is told", (_case, tx, fault) => {
    expect(() => assertTransaction("a store", tx, shape)).toThrow(
      new TypeError(`a store: completeIn needs the client; ${fault}. See https://pages.example/`),
    );
  });
});

describe("assertDuration()", () => {
  test.each([1, 60_000, Number.MAX_SAFE_INTEGER])("takes %d", (durationMs) => {
    expect(() => assertDuration("a store", "leaseMs", durationMs)).not.toThrow();
  });

  test.each([0, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, "1000", 5n, undefined])(
    "refuses %p",
    (durationMs) => {
      expect(() => assertDuration("a store", "leaseMs", durationMs)).toThrow(/^a store: leaseMs must be/);
    },
  );
});

describe("assertOutcome()", () => {
  test.each(["done", "released"])("takes %s", (outcome) => {
    expect(() => assertOutcome("a store", outcome)).not.toThrow();
  });

  test.each(["", "Done", "paid", "__proto__", undefined, ["done"]])("refuses %p", (outcome) => {
    expect(() => assertOutcome("a store", outcome)).toThrow(/^a store: outcome must be/);
  });
});

describe("assertDecision()", () => {
  test.each([0, 1, Number.MAX_SAFE_INTEGER])("takes the fence %d", (fence) => {
    expect(() => assertDecision("a store", { fence })).not.toThrow();
  });

  test.each([
    undefined,
    null,
    7,
    {},
    { fence: undefined },
    { fence: "7" },
    { fence: 7n },
    { fence: 7.5 },
    { fence: -1 },
    { fence: Number.NaN },
    { fence: 2 ** 53 },
  ])("refuses %p", (decision) => {
    expect(() => assertDecision("a store", decision)).toThrow(/^a store: a decision needs \{ fence \}/);
  });
});

describe("assertDecision() of who decides and why", () => {
  test.each([{}, { by: "b".repeat(128), note: "n".repeat(512) }, { by: "\0", note: "\ud800" }])(
    "takes %p",
    (given) => {
      expect(() => assertDecision("a store", { fence: 1, ...given })).not.toThrow();
    },
  );

  test.each([
    ["by", { by: "" }],
    ["by", { by: "b".repeat(129) }],
    ["by", { by: 7 }],
    ["by", { by: null }],
    ["note", { note: "" }],
    ["note", { note: "n".repeat(513) }],
    ["note", { note: ["n"] }],
  ])("refuses another %s", (name, given) => {
    expect(() => assertDecision("a store", { fence: 1, ...given })).toThrow(TypeError);
    expect(() => assertDecision("a store", { fence: 1, ...given })).toThrow(
      new RegExp(`^a store: ${name} must be a string of 1 to`),
    );
  });
});

describe("assertOpen()", () => {
  test("throws after close alone", () => {
    expect(() => assertOpen("a store", false)).not.toThrow();
    expect(() => assertOpen("a store", true)).toThrow("a store: the store is closed");
  });
});
