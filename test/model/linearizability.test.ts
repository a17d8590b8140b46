import { describe, expect, test } from "@jest/globals";
import { ReferenceStore, type Step } from "@countersign/store-contract/model";
import { leaseMs, retentionMs } from "./engine.ts";
import { type Call, failed, isLinearizable } from "./linearizability.ts";

const key = "k";
const claim = (token: string): Step => ({ op: "claim", key, token, leaseMs, recovery: "rerun" });
const step = (op: "complete" | "release", token: string): Step => ({ op, key, token });
const heartbeat = (token: string): Step => ({ op: "heartbeat", key, token, leaseMs });
const acquired = (fence: number) => ({ status: "acquired", fence });
const inFlight = (token: string) => ({
  status: "in-flight",
  fingerprint: `f-${token}`,
  remainingMs: leaseMs,
});
const done = (token: string) => ({ status: "done", fingerprint: `f-${token}` });
const at = (sentAt: number, answeredAt: number, taken: Step, answer: unknown): Call => ({
  step: taken,
  answer,
  sentAt,
  answeredAt,
});

describe("isLinearizable", () => {
  test.each<[string, Call[]]>([
    ["no calls", []],
    ["one owner and one who waits", [at(0, 3, claim("a"), acquired(1)), at(1, 2, claim("b"), inFlight("a"))]],
    [
      "calls that overlap and took effect the other way round",
      [at(0, 5, claim("a"), inFlight("b")), at(1, 6, claim("b"), acquired(1))],
    ],
    [
      "a completion that a later claim knows of before it was answered",
      [
        at(0, 1, claim("a"), acquired(1)),
        at(2, 9, step("complete", "a"), "ok"),
        at(3, 4, claim("b"), done("a")),
      ],
    ],
    [
      "a second owner behind a release",
      [
        at(0, 1, claim("a"), acquired(1)),
        at(2, 5, step("release", "a"), "ok"),
        at(3, 4, claim("b"), acquired(7)),
      ],
    ],
    [
      "a failed step that took effect",
      [
        at(0, 1, claim("a"), acquired(1)),
        at(2, 3, step("complete", "a"), failed),
        at(4, 5, claim("b"), done("a")),
      ],
    ],
    [
      "a failed step that did not",
      [
        at(0, 1, claim("a"), acquired(1)),
        at(2, 3, step("complete", "a"), failed),
        at(4, 5, claim("b"), inFlight("a")),
      ],
    ],
  ])("accepts %s", (_name, calls) => {
    expect(isLinearizable(calls, new ReferenceStore({ retentionMs }))).toBe(true);
  });

  test.each<[string, Call[]]>([
    ["two owners", [at(0, 2, claim("a"), acquired(1)), at(1, 3, claim("b"), acquired(2))]],
    ["done before it was sent", [at(0, 1, claim("a"), acquired(1)), at(2, 3, claim("b"), done("a"))]],
    [
      "an answer that goes back in time",
      [
        at(0, 1, claim("a"), acquired(1)),
        at(2, 3, step("complete", "a"), "ok"),
        at(4, 5, claim("b"), inFlight("a")),
      ],
    ],
    [
      "a fence that does not grow",
      [
        at(0, 1, claim("a"), acquired(5)),
        at(2, 3, step("release", "a"), "ok"),
        at(4, 5, claim("b"), acquired(5)),
      ],
    ],
    ["a heartbeat of nobody's run", [at(0, 3, heartbeat("b"), "ok"), at(1, 2, claim("a"), acquired(1))]],
  ])("refuses %s", (_name, calls) => {
    expect(isLinearizable(calls, new ReferenceStore({ retentionMs }))).toBe(false);
  });
});
