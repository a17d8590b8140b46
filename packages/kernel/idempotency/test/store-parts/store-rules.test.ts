import { beforeEach, describe, expect, jest, test } from "@jest/globals";
import { StoreGate } from "@countersign/idempotency/store";

const claim = { token: "t", fingerprint: "f", leaseMs: 1_000, recovery: "hold" } as const;
const use = { scope: "s", nonce: "n", token: "t", retainMs: 1_000 };
const list = { state: "running", limit: 1 } as const;

type Step = (gate: StoreGate) => void;

const steps: readonly (readonly [name: string, step: Step])[] = [
  ["assertUsable", (gate) => gate.assertUsable()],
  ["assertKey", (gate) => gate.assertKey("k")],
  ["assertOwner", (gate) => gate.assertOwner("k", "t")],
  ["assertClaim", (gate) => gate.assertClaim("k", claim)],
  ["assertHeartbeat", (gate) => gate.assertHeartbeat("k", "t", 1_000)],
  ["assertHold", (gate) => gate.assertHold("k", "t", "why")],
  ["assertResolve", (gate) => gate.assertResolve("k", "done", { fence: 1 })],
  ["assertReopen", (gate) => gate.assertReopen("k", { fence: 1 })],
  ["assertList", (gate) => gate.assertList(list)],
  ["assertNonce", (gate) => gate.assertNonce(use)],
  ["assertToken", (gate) => gate.assertToken("t")],
];

const inOwnTransaction: Step = (gate) => gate.assertTokenIn("t");

describe("StoreGate", () => {
  const assertEngine = jest.fn<() => void>();
  let gate: StoreGate;
  beforeEach(() => {
    assertEngine.mockReset();
    gate = new StoreGate("a store", assertEngine);
  });

  test.each([...steps, ["assertTokenIn", inOwnTransaction] as const])(
    "%s() passes until close()",
    (_name, step) => {
      expect(() => step(gate)).not.toThrow();
      gate.close();
      expect(() => step(gate)).toThrow("a store: the store is closed");
    },
  );

  test.each(steps)("%s() passes only while the engine can be used", (_name, step) => {
    assertEngine.mockImplementation(() => {
      throw new Error("not now");
    });
    expect(() => step(gate)).toThrow("not now");
    expect(() => inOwnTransaction(gate)).not.toThrow();
  });

  test.each<readonly [title: string, argument: string, step: Step]>([
    ["a key that is none, at a read", "key", () => gate.assertKey("")],
    ["an owner without a token", "token", () => gate.assertOwner("k", undefined)],
    ["no token, in a transaction", "token", () => gate.assertTokenIn(undefined)],
    ["a claim of no key", "key", () => gate.assertClaim(undefined, claim)],
    ["a claim without a token", "token", () => gate.assertClaim("k", { ...claim, token: "" })],
    [
      "a claim without a fingerprint",
      "fingerprint",
      () => gate.assertClaim("k", { ...claim, fingerprint: "" }),
    ],
    ["a claim without a lease", "leaseMs", () => gate.assertClaim("k", { ...claim, leaseMs: 0 })],
    ["a heartbeat without a token", "token", () => gate.assertHeartbeat("k", undefined, 1_000)],
    ["a heartbeat without a lease", "leaseMs", () => gate.assertHeartbeat("k", "t", Number.NaN)],
    ["a hold without a reason", "reason", () => gate.assertHold("k", "t", "")],
    ["a decision about no key", "key", () => gate.assertResolve("", "done", { fence: 1 })],
    ["a decision without a fence", "a decision", () => gate.assertResolve("k", "done", {})],
    ["a reopening of no key", "key", () => gate.assertReopen("", { fence: 1 })],
    ["a reopening without a fence", "a decision", () => gate.assertReopen("k", {})],
    ["a nonce without a scope", "scope", () => gate.assertNonce({ ...use, scope: "" })],
    ["no nonce", "nonce", () => gate.assertNonce({ ...use, nonce: undefined })],
    ["a nonce without a token", "token", () => gate.assertNonce({ ...use, token: {} })],
    ["a nonce for no time", "retainMs", () => gate.assertNonce({ ...use, retainMs: 0 })],
    ["an answer without a token", "token", () => gate.assertToken("")],
  ])("refuses %s", (_title, argument, step) => {
    expect(() => step(gate)).toThrow(TypeError);
    expect(() => step(gate)).toThrow(new RegExp(`^a store: ${argument} `));
  });

  test.each<readonly [argument: string, step: (value: never) => void, good: unknown[], bad: unknown[]]>([
    [
      "key",
      (key) => gate.assertKey(key),
      ["k", "k".repeat(512), "\0"],
      ["", "k".repeat(513), undefined, 7, ["k"], { length: 3 }, new String("k")],
    ],
    [
      "leaseMs",
      (lease) => gate.assertHeartbeat("k", "t", lease),
      [1, 60_000, Number.MAX_SAFE_INTEGER],
      [0, -1, 0.5, Number.NaN, Infinity, 2 ** 53, "1000", 5n, undefined],
    ],
    [
      "outcome",
      (outcome) => gate.assertResolve("k", outcome, { fence: 1 }),
      ["done", "released"],
      ["", "Done", "paid", "__proto__", undefined, ["done"]],
    ],
    [
      "state",
      (state) => gate.assertList({ state, limit: 1 }),
      ["running", "held", "done"],
      ["free", undefined, ["run"]],
    ],
    [
      "limit",
      (limit) => gate.assertList({ state: "running", limit }),
      [1, 1_000],
      [undefined, 0, 1_001, 1.5, "10"],
    ],
    [
      "by",
      (by) => gate.assertReopen("k", { fence: 1, by }),
      [undefined, "b".repeat(128), "\0"],
      ["", "b".repeat(129), 7, null],
    ],
    [
      "note",
      (note) => gate.assertReopen("k", { fence: 1, note }),
      [undefined, "n".repeat(512), "\ud800"],
      ["", "n".repeat(513), ["n"]],
    ],
    [
      "a decision",
      (decision) => gate.assertReopen("k", decision),
      [{ fence: 0 }, { fence: Number.MAX_SAFE_INTEGER }],
      [undefined, null, 7, {}, ...["7", 7n, 7.5, -1, Number.NaN, 2 ** 53].map((fence) => ({ fence }))],
    ],
  ])("takes and refuses values of %s", (argument, step, good, bad) => {
    for (const value of good) expect(() => step(value as never)).not.toThrow();
    for (const value of bad) expect(() => step(value as never)).toThrow(new RegExp(`^a store: ${argument} `));
  });
});
