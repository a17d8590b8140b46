// Every transition of a key, without a store.
import { describe, expect, test } from "@jest/globals";
import type { IdempotencyClaim, IdempotencyClaimResult } from "@countersign/idempotency";
import {
  completion,
  decideClaim,
  decideFirstClaim,
  decideHold,
  decideRelease,
  decideReopen,
  decideResolve,
  isCompletedBy,
  isOver,
  recordOf,
  releasedOf,
  renewal,
  type Decision,
  type SeenRow,
} from "../dist/life.js";
import { leaseExpired } from "@countersign/idempotency/store";

const leaseMs = 1_000;
const stored = (more: Partial<SeenRow> = {}): SeenRow => ({
  state: "running",
  token: "owner",
  fence: 7,
  fingerprint: "print of owner",
  reason: "",
  recovery: "rerun",
  remainingMs: leaseMs,
  version: 1,
  nowMs: 1_900_000_000_000,
  ...more,
});
const claimBy = (token: string, recovery: IdempotencyClaim["recovery"] = "hold"): IdempotencyClaim => ({
  token,
  fingerprint: `print of ${token}`,
  leaseMs,
  recovery,
});

const answer = (reply: object): object => ({ reply });
const inFlight = (remainingMs: number): object => ({
  status: "in-flight",
  fingerprint: "print of owner",
  remainingMs,
});
const held = (reason: string): object => ({ status: "held", fingerprint: "print of owner", reason });
const lease = { state: "running", reason: "", durationMs: leaseMs };
const renewed = { write: lease, reply: { status: "acquired", fence: 7 } };
/** The change by which an attempt takes a key. */
const taken = (token: string, more: object = {}): object => ({
  write: {
    ...lease,
    token,
    fingerprint: `print of ${token}`,
    recovery: "hold",
    raisesFence: true,
    ...more,
  },
  reply: { status: "acquired", fence: 7 },
});
const take = taken("other");
const heldNow = {
  write: { state: "held", reason: leaseExpired, durationMs: 0 },
  reply: held(leaseExpired),
};

/** A decision with its reply for fence 7. */
const shown = <Reply>(decision: Decision<Reply>): object =>
  decision.write === undefined ? decision : { write: decision.write, reply: decision.reply(7) };

describe("decideClaim()", () => {
  const other = claimBy("other");
  const rerun = claimBy("other", "rerun");
  test.each([
    ["takes a free key, and keeps what was decided about it", stored({ state: "free" }), other, take],
    [
      "takes a free key whose memory has ended, and forgets what was decided",
      stored({ state: "free", remainingMs: 0 }),
      other,
      taken("other", { decision: null }),
    ],
    [
      "takes it also for the token that has released it",
      stored({ state: "free" }),
      claimBy("owner"),
      taken("owner"),
    ],
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
    [
      "takes a done key at the end of its retention",
      stored({ state: "done", remainingMs: 0 }),
      other,
      taken("other", { decision: null }),
    ],
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
      { write: lease, reply: inFlight(leaseMs) },
    ],
    ["holds an expired run", stored({ remainingMs: 0 }), other, heldNow],
    [
      "takes an expired run under rerun",
      stored({ remainingMs: 0 }),
      rerun,
      taken("other", { recovery: "rerun" }),
    ],
    [
      "holds an expired run under rerun whose owner said hold",
      stored({ remainingMs: 0, recovery: "hold" }),
      rerun,
      heldNow,
    ],
    [
      "holds an expired run under what is no recovery",
      stored({ remainingMs: 0 }),
      { ...other, recovery: "Rerun" as "rerun" },
      heldNow,
    ],
  ])("%s", (_title, record, claim, expected) => {
    expect(shown(decideClaim(record, claim))).toEqual(expected);
  });
});

describe("recordOf()", () => {
  const owner = { token: "owner", fence: 7, fingerprint: "print of owner" };
  test.each([
    ["a run", stored(), { state: "running", ...owner, remainingMs: leaseMs }],
    ["an expired run", stored({ remainingMs: -5 }), { state: "running", ...owner, remainingMs: -5 }],
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

test("a first claim writes a running key", () => {
  expect(shown<IdempotencyClaimResult>(decideFirstClaim(claimBy("other")))).toEqual(take);
});

const retentions = { retentionMs: 90, fenceMemoryMs: 5 };
const decided = { at: 1, by: "anna", outcome: "released", fence: 6, reason: "why" } as const;
const ok = (write: object): object => ({ write, reply: "ok" });
const lost = { reply: "lost" };

describe("the owner's steps", () => {
  test("are written over the states from which they lead", () => {
    expect(renewal(9)).toEqual({
      from: ["running"],
      write: { state: "running", reason: "", durationMs: 9 },
    });
    expect(completion(9)).toEqual({
      from: ["running", "held"],
      write: { state: "done", reason: "", durationMs: 9 },
    });
  });

  test.each([
    ["its done key", stored({ state: "done" }), true],
    ["its done key at the end of the retention", stored({ state: "done", remainingMs: 0 }), false],
    ["a done key of another attempt", stored({ state: "done", token: "other" }), false],
    ["its running key", stored(), false],
    ["no row", undefined, false],
  ])("isCompletedBy() of %s", (_title, row, expected) => {
    expect(isCompletedBy("owner", row)).toBe(expected);
  });

  test.each([
    [
      "frees a running key, and keeps its fence for a while",
      stored(),
      ok({ state: "free", reason: "", durationMs: 5 }),
    ],
    [
      "keeps an operator's decision as long as one is kept",
      stored({ decision: decided }),
      ok({ state: "free", reason: "", durationMs: 90 }),
    ],
    [
      "frees it also after its lease",
      stored({ remainingMs: -1 }),
      ok({ state: "free", reason: "", durationMs: 5 }),
    ],
    ["loses a key of another attempt", stored({ token: "other" }), lost],
    ["loses a held key", stored({ state: "held" }), lost],
    ["loses a done key", stored({ state: "done" }), lost],
    ["loses a key without a row", undefined, lost],
  ])("decideRelease() %s", (_title, row, expected) => {
    expect(shown(decideRelease(row, "owner", retentions))).toEqual(expected);
  });

  test.each([
    ["holds a running key", stored(), ok({ state: "held", reason: "in doubt", durationMs: 0 })],
    ["loses a key of another attempt", stored({ token: "other" }), lost],
    ["loses a held key", stored({ state: "held" }), lost],
    ["loses a done key", stored({ state: "done" }), lost],
    ["loses a key without a row", undefined, lost],
  ])("decideHold() %s", (_title, row, expected) => {
    expect(shown(decideHold(row, "owner", "in doubt"))).toEqual(expected);
  });
});

describe("an operator's steps", () => {
  const step = { token: "new", fence: 7, by: "anna", note: "T-1" };
  const entry = { at: 1_900_000_000_000, by: "anna", note: "T-1" };
  const kept = (reason: string, outcome: "done" | "released" = "done"): object => ({
    ...entry,
    outcome,
    fence: 7,
    reason,
  });
  const resolved = (reason: string): object =>
    ok({ state: "done", token: "new", reason: "", durationMs: 90, decision: kept(reason) });
  const notHeld = { reply: "not-held" };

  test.each([
    ["ends a held key, and keeps why it was held", stored({ state: "held", reason: "why" }), resolved("why")],
    ["ends a running key whose lease has ended", stored({ remainingMs: 0 }), resolved(leaseExpired)],
    ["leaves a running key to its owner", stored({ remainingMs: 1 }), notHeld],
    ["leaves another attempt alone", stored({ state: "held", fence: 8 }), notHeld],
    ["leaves a done key", stored({ state: "done" }), notHeld],
    ["leaves a free key", stored({ state: "free" }), notHeld],
    ["recognises itself", stored({ state: "done", token: "new" }), { reply: "ok" }],
    ["finds no row", undefined, notHeld],
  ])("decideResolve() %s", (_title, row, expected) => {
    expect(shown(decideResolve(row, "done", step, 90))).toEqual(expected);
  });

  test("decideResolve() frees a key for the next attempt", () => {
    expect(shown(decideResolve(stored({ state: "held", reason: "why" }), "released", step, 90))).toEqual(
      ok({ state: "free", token: "new", reason: "", durationMs: 90, decision: kept("why", "released") }),
    );
  });

  const resolvedRow = (more: Partial<SeenRow> = {}): SeenRow =>
    stored({ state: "done", decision: { ...decided, fence: 7 }, ...more });
  const reopened = ok({
    state: "held",
    token: "new",
    reason: "why",
    durationMs: 0,
    raisesFence: true,
    decision: { ...decided, fence: 7, reopened: entry },
  });
  const notDecided = { reply: "not-decided" };

  test.each([
    ["takes back what was resolved as done", resolvedRow(), reopened],
    ["takes back what was released", resolvedRow({ state: "free" }), reopened],
    ["leaves what an attempt has done", resolvedRow({ decision: undefined }), notDecided],
    ["leaves what a later attempt has done", resolvedRow({ decision: decided }), notDecided],
    ["leaves a decision about another attempt", resolvedRow({ fence: 8 }), notDecided],
    ["leaves a key that is running again", resolvedRow({ state: "running" }), notDecided],
    ["leaves what has ended with its retention", resolvedRow({ remainingMs: 0 }), notDecided],
    ["recognises itself", stored({ state: "held", token: "new" }), { reply: "ok" }],
    ["finds no row", undefined, notDecided],
  ])("decideReopen() %s", (_title, row, expected) => {
    expect(shown(decideReopen(row, step))).toEqual(expected);
  });
});

describe("releasedOf()", () => {
  const free = { state: "free", decision: decided } as const;
  test.each([
    [
      "what an operator freed",
      stored(free),
      { state: "free", fence: 7, fingerprint: "print of owner", decision: decided },
    ],
    ["nothing at the end of its memory", stored({ ...free, remainingMs: 0 }), undefined],
    ["nothing of what an attempt freed", stored({ state: "free" }), undefined],
    ["nothing of a done key", stored({ ...free, state: "done" }), undefined],
    ["nothing without a row", undefined, undefined],
  ])("shows %s", (_title, row, expected) => {
    expect(releasedOf(row)).toEqual(expected);
  });
});

test.each<[SeenRow["state"], boolean]>([
  ["running", false],
  ["held", false],
  ["done", true],
  ["free", true],
])("isOver() of a %s key without time", (state, expected) => {
  expect(isOver(stored({ state, remainingMs: 0 }))).toBe(expected);
  expect(isOver(stored({ state, remainingMs: 1 }))).toBe(false);
});
