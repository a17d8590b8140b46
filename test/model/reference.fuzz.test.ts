// The reference is what stores are held to: it keeps I1 to I3 itself, whatever comes.
import { ReferenceStore } from "../../packages/stores/store-contract/dist/model/reference-store.js";
import { fenceIn, type Step } from "../../packages/stores/store-contract/dist/model/step.js";
import { expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { fuzzRuns } from "../support/runs/share.ts";
import { type PlannedStep, contested as key, leaseMs, plannedSteps } from "./history.ts";
import { PaymentRecord } from "./payment-record.ts";

const retentionMs = 86_400_000;

class Platform {
  readonly reference = new ReferenceStore({ retentionMs });
  readonly record = new PaymentRecord();
  #fence = 0;

  /** An operator decides about the attempt that has the key. */
  plan(step: PlannedStep): unknown {
    if (step.op !== "resolve" && step.op !== "reopen") return this.take(step);
    const read = this.take({ op: "read", key }) ?? this.take({ op: "readReleased", key });
    return this.take({ ...step, fence: fenceIn(read) ?? 1 });
  }

  take(step: Step): unknown {
    this.#fence += 1;
    const answer = this.reference.apply(step, { fence: this.#fence, token: `nobody's ${this.#fence}` });
    this.record.note(step, answer);
    return answer;
  }

  pass(ms: number): void {
    const wasDone = this.reference.stateOf(key) === "done";
    this.reference.nowMs += ms;
    if (wasDone && this.reference.stateOf(key) === "absent") this.record.forget([key]);
  }
}

test("the reference pays a key once, says done of no other, and always leaves a way out", () => {
  const ms = fc.constantFrom(1, leaseMs - 1, leaseMs, retentionMs);
  const events = fc.array(fc.oneof({ weight: 5, arbitrary: plannedSteps() }, ms), {
    maxLength: 60,
    size: "max",
  });
  const property = fc.property(events, (some) => {
    const platform = new Platform();
    for (const event of some) {
      if (typeof event === "number") platform.pass(event);
      else platform.plan(event);
    }
    const claim = { op: "claim", key, token: "next", leaseMs, recovery: "rerun" } as const;
    platform.take(claim);
    platform.pass(leaseMs);
    // Where the owner of an expired run has said hold, it comes to an operator.
    platform.take(claim);
    if (platform.reference.stateOf(key) === "held")
      platform.plan({ op: "resolve", key, outcome: "released" });
    const isDone = platform.reference.stateOf(key) === "done";
    expect(platform.take(claim)).toMatchObject({ status: isDone ? "done" : "acquired" });
    if (isDone) return;
    expect(platform.take({ op: "complete", key, token: "next" })).toBe("ok");
    expect(platform.record.payersOf(key)).toEqual(new Set(["next"]));
  });
  fc.assert(property, fuzzRuns(5_000));
});
