import { StoreGate } from "@countersign/idempotency/store";
import { beforeEach, describe, expect, jest, test } from "@jest/globals";

const claim = { token: "t", fingerprint: "f", leaseMs: 1_000, recovery: "hold" } as const;
const use = { scope: "s", nonce: "n", token: "t", retainMs: 1_000 };

type Step = (gate: StoreGate) => void;

const steps: readonly (readonly [name: string, step: Step])[] = [
  ["assertUsable", (gate) => gate.assertUsable()],
  ["assertKey", (gate) => gate.assertKey("k")],
  ["assertOwner", (gate) => gate.assertOwner("k", "t")],
  ["assertClaim", (gate) => gate.assertClaim("k", claim)],
  ["assertHeartbeat", (gate) => gate.assertHeartbeat("k", "t", 1_000)],
  ["assertHold", (gate) => gate.assertHold("k", "t", "why")],
  ["assertResolve", (gate) => gate.assertResolve("k", "done", { fence: 1 })],
  ["assertList", (gate) => gate.assertList({ state: "run", limit: 1 })],
  ["assertNonce", (gate) => gate.assertNonce(use)],
];

const inOwnTransaction: Step = (gate) => gate.assertOwnerIn("k", "t");

describe("StoreGate", () => {
  const assertEngine = jest.fn<() => void>();
  let gate: StoreGate;
  beforeEach(() => {
    assertEngine.mockReset();
    gate = new StoreGate("a store", assertEngine);
  });

  test.each([...steps, ["assertOwnerIn", inOwnTransaction] as const])(
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
    ["a key that is none, in a transaction", "key", () => gate.assertOwnerIn(7, "t")],
    ["an owner without a token", "token", () => gate.assertOwner("k", undefined)],
    ["an owner without a token, in a transaction", "token", () => gate.assertOwnerIn("k", undefined)],
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
    ["a decision of another outcome", "outcome", () => gate.assertResolve("k", "paid", { fence: 1 })],
    ["a decision without a fence", "a decision", () => gate.assertResolve("k", "done", {})],
    ["a reopening of no key", "key", () => gate.assertReopen("", { fence: 1 })],
    ["a reopening without a fence", "a decision", () => gate.assertReopen("k", {})],
    ["a list without a limit", "limit", () => gate.assertList({ state: "run", limit: 0 })],
    ["a nonce without a scope", "scope", () => gate.assertNonce({ ...use, scope: "" })],
    ["no nonce", "nonce", () => gate.assertNonce({ ...use, nonce: undefined })],
    ["a nonce without a token", "token", () => gate.assertNonce({ ...use, token: {} })],
    ["a nonce for no time", "retainMs", () => gate.assertNonce({ ...use, retainMs: 0 })],
  ])("refuses %s", (_title, argument, step) => {
    expect(() => step(gate)).toThrow(TypeError);
    expect(() => step(gate)).toThrow(new RegExp(`^a store: ${argument} `));
  });
});
