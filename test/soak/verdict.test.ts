import { describe, expect, test } from "@jest/globals";
import { type SoakAnswer, type SoakEvidence, judge } from "./verdict.mjs";

const first: SoakAnswer = { key: "k", nonce: "n", kind: "payout", status: 200, unpaid: false };
const replayed: SoakAnswer = { ...first, kind: "replay", status: 401, firstStatus: 200 };
const sound: SoakEvidence = {
  keys: ["k"],
  paidKeys: ["k"],
  wedged: [],
  answers: [first, { ...first, nonce: "m", kind: "duplicate", status: 409 }, replayed],
  passes: ["fresh n t1", "run n k 1", "fresh m t2"],
};

describe("judge", () => {
  test.each<[string, Partial<SoakEvidence>]>([
    ["a soak in which everything adds up", {}],
    [
      "a claim that was noted again, behind a lost reply",
      { passes: ["fresh n t1", "fresh n t1", "run n k 1"] },
    ],
    ["a replay of what was never received", { answers: [{ ...replayed, status: 200, firstStatus: 0 }] }],
    ["a handler that ran again behind a crash", { passes: ["run n k 1", "run m k 2"] }],
  ])("finds nothing wrong with %s", (_name, change) => {
    expect(judge({ ...sound, ...change })).toEqual([]);
  });

  test.each<[string, Partial<SoakEvidence>, string]>([
    ["a key that is paid twice", { paidKeys: ["k", "k"] }, "k has 2 payouts"],
    ["a key that is not paid", { paidKeys: [] }, "k has 0 payouts"],
    ["a payout that nobody sent", { paidKeys: ["k", "x"] }, "x is paid, and was never sent"],
    ["a key that stays refused", { wedged: ["k"] }, "k is wedged: no retry was accepted"],
    [
      "an answer before the payout",
      { answers: [{ ...first, unpaid: true }] },
      "k was answered with 200 before it was paid",
    ],
    ["a second 200", { answers: [first, first] }, "k was answered with 200 2 times"],
    [
      "a status that is none of the interface's",
      { answers: [{ ...first, status: 500 }] },
      "k, payout, was answered with 500",
    ],
    [
      "a fresh request that is refused",
      { answers: [{ ...first, status: 401 }] },
      "k, payout, was answered with 401",
    ],
    [
      "a replay that passes",
      { answers: [{ ...replayed, status: 409 }] },
      "k: a replay was answered with 409 behind 200",
    ],
    ["a nonce of two requests", { passes: ["fresh n t1", "fresh n t2"] }, "accepted nonce n: 2 times"],
    [
      "a handler that runs twice for a nonce",
      { passes: ["run n k 1", "run n k 2"] },
      "handler for nonce n: 2 times",
    ],
    [
      "two owners with one fence",
      { passes: ["run n k 1", "run m k 1"] },
      "handler for k with fence 1: 2 times",
    ],
    ["an error in a payer", { passes: ['fault "Error: x"'] }, 'a payer failed: "Error: x"'],
  ])("names %s", (_name, change, fault) => {
    expect(judge({ ...sound, ...change })).toContain(fault);
  });
});
