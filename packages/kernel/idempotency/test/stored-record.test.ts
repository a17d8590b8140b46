import { describe, expect, test } from "@jest/globals";
import { decideClaim, leaseExpired, recordOf, type StoredRecord } from "@countersign/idempotency/store";
import type { IdempotencyClaim } from "@countersign/idempotency";

const leaseMs = 1_000;
const stored = (more: Partial<StoredRecord> = {}): StoredRecord => ({
  state: "run",
  token: "owner",
  fence: 7,
  fingerprint: "print of owner",
  reason: "",
  remainingMs: leaseMs,
  ...more,
});
const claimBy = (token: string, recovery: IdempotencyClaim["recovery"] = "hold"): IdempotencyClaim => ({
  token,
  fingerprint: `print of ${token}`,
  leaseMs,
  recovery,
});

const answer = (result: object): object => ({ action: "answer", result });
const inFlight = (remainingMs: number): object => ({
  status: "in-flight",
  fingerprint: "print of owner",
  remainingMs,
});
const held = (reason: string): object => ({ status: "held", fingerprint: "print of owner", reason });
const renewed = { action: "lease", result: { status: "acquired", fence: 7 } };
const take = { action: "take" };

describe("decideClaim()", () => {
  const other = claimBy("other");
  const rerun = claimBy("other", "rerun");
  test.each([
    ["takes a key that never was", undefined, other, take],
    ["takes a free key, whatever is left of its memory", stored({ state: "free" }), other, take],
    ["takes it also for the token that has released it", stored({ state: "free" }), claimBy("owner"), take],
    [
      "tells of a done key until its last millisecond",
      stored({ state: "done", remainingMs: 1 }),
      rerun,
      answer({ status: "done", fingerprint: "print of owner" }),
    ],
    [
      "tells of a done key also the token that has completed it",
      stored({ state: "done" }),
      claimBy("owner"),
      answer({ status: "done", fingerprint: "print of owner" }),
    ],
    ["takes a done key at the end of its retention", stored({ state: "done", remainingMs: 0 }), other, take],
    [
      "leaves a held key to its operator, however old it is",
      stored({ state: "held", reason: "why", remainingMs: -1 }),
      rerun,
      answer(held("why")),
    ],
    ["begins the lease of the same attempt anew", stored(), claimBy("owner"), renewed],
    ["begins it anew also behind its end", stored({ remainingMs: -1 }), claimBy("owner"), renewed],
    ["leaves one lease to its owner", stored(), rerun, answer(inFlight(leaseMs))],
    ["leaves the last millisecond to its owner", stored({ remainingMs: 1 }), rerun, answer(inFlight(1))],
    [
      "cuts what is longer to one lease",
      stored({ remainingMs: leaseMs + 1 }),
      rerun,
      { action: "lease", result: inFlight(leaseMs) },
    ],
    [
      "holds an expired run",
      stored({ remainingMs: 0 }),
      other,
      { action: "hold", result: held(leaseExpired) },
    ],
    ["takes an expired run under rerun", stored({ remainingMs: 0 }), rerun, take],
    [
      "holds an expired run under what is no recovery",
      stored({ remainingMs: 0 }),
      { ...other, recovery: "Rerun" as "rerun" },
      { action: "hold", result: held(leaseExpired) },
    ],
  ])("%s", (_title, record, claim, expected) => {
    expect(decideClaim(record, claim)).toEqual(expected);
  });
});

describe("recordOf()", () => {
  const owner = { token: "owner", fence: 7, fingerprint: "print of owner" };
  test.each([
    ["a run", stored(), { state: "run", ...owner, remainingMs: leaseMs }],
    ["an expired run", stored({ remainingMs: -5 }), { state: "run", ...owner, remainingMs: -5 }],
    [
      "a held key, however old",
      stored({ state: "held", reason: "why", remainingMs: -5 }),
      { state: "held", ...owner, reason: "why" },
    ],
    ["a done key", stored({ state: "done" }), { state: "done", ...owner }],
    ["no done key at the end of its retention", stored({ state: "done", remainingMs: 0 }), undefined],
    ["no free key", stored({ state: "free" }), undefined],
  ])("shows %s", (_title, record, expected) => {
    expect(recordOf(record)).toStrictEqual(expected);
  });
});
