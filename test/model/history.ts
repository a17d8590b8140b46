import * as fc from "fast-check";
import { fenceIn, performStep, type Step } from "../../packages/stores/store-contract/dist/model/step.js";
import type { IdempotencyStore } from "@countersign/idempotency";
import { type Call, failed } from "./linearizability.ts";

export const contested = "a.b.c";
export const leaseMs = 1_000;

/** Two processes on one store. */
export interface Platform {
  /** In the place of the contested one. */
  readonly key: string;
  readonly stores: readonly [IdempotencyStore, IdempotencyStore];
  /** Whether a step failed because it met a lock for too long, as it may under concurrency. */
  gaveUpWaiting(error: unknown): boolean;
}

/** Which of the two processes does a step. */
type ProcessIndex = 0 | 1;

/** A decision is about the attempt that its operator has read a moment before. */
export type PlannedStep =
  | Exclude<Step, { op: "resolve" | "reopen" }>
  | Omit<Extract<Step, { op: "resolve" }>, "fence">
  | Omit<Extract<Step, { op: "reopen" }>, "fence">;

/** Steps of one client, taken one after the other by one process, at the same time as those of the others. */
export interface Program {
  readonly by: ProcessIndex;
  readonly steps: readonly PlannedStep[];
}

/** What happened before, and what three clients do at once. */
export interface Contest {
  readonly before: readonly PlannedStep[];
  readonly passedMs: number;
  readonly programs: readonly Program[];
}

/** Steps on one key. Tokens are shared: a driver may send a step again while others are under way. */
export function plannedSteps(): fc.Arbitrary<PlannedStep> {
  const key = fc.constant(contested);
  const token = fc.constantFrom("t1", "t2", "t3");
  const lease = fc.constant(leaseMs);
  const recovery = fc.constantFrom("hold" as const, "rerun");
  const claim = fc.record({ op: fc.constant("claim" as const), key, token, leaseMs: lease, recovery });
  const op = fc.constantFrom("complete" as const, "release");
  const heartbeat = fc.record({ op: fc.constant("heartbeat" as const), key, token, leaseMs: lease });
  const reason = fc.constant("in doubt");
  const outcome = fc.constantFrom("done" as const, "released");
  return fc.oneof(
    { weight: 4, arbitrary: claim },
    { weight: 2, arbitrary: fc.record({ op, key, token }) },
    heartbeat,
    fc.record({ op: fc.constant("hold" as const), key, token, reason }),
    fc.record({ op: fc.constant("resolve" as const), key, outcome, by: fc.constant("anna") }),
    fc.record({ op: fc.constant("reopen" as const), key, note: fc.constant("\ud800") }),
    fc.record({ op: fc.constant("read" as const), key }),
  );
}

export function contests(): fc.Arbitrary<Contest> {
  const step = plannedSteps();
  const program = fc.record({
    by: fc.constantFrom<ProcessIndex>(0, 1),
    steps: fc.array(step, { minLength: 1, maxLength: 3 }),
  });
  return fc.record({
    before: fc.array(step, { maxLength: 3 }),
    passedMs: fc.constantFrom(1, leaseMs),
    programs: fc.array(program, { minLength: 3, maxLength: 3 }),
  });
}

/** Runs all programs at once. Returns what their clients saw; rejects with an error that the engine does not allow itself. */
export async function record(platform: Platform, programs: readonly Program[]): Promise<Call[]> {
  const calls: Call[] = [];
  let time = 0;
  const run = async ({ by, steps }: Program): Promise<void> => {
    const take = async (planned: Step): Promise<unknown> => {
      const step = { ...planned, key: platform.key };
      const sentAt = ++time;
      const answer = await performStep(platform.stores[by], step).catch((error: unknown) => {
        if (!platform.gaveUpWaiting(error)) throw error;
        return failed;
      });
      calls.push({ step, answer, sentAt, answeredAt: ++time });
      return answer;
    };
    for (const step of steps) {
      if (step.op !== "resolve" && step.op !== "reopen") await take(step);
      else {
        const seen = await take({ op: "read", key: step.key });
        const released = seen === undefined ? await take({ op: "readReleased", key: step.key }) : seen;
        await take({ ...step, fence: fenceIn(released) ?? 1 });
      }
    }
  };
  await Promise.all(programs.map(run));
  return calls;
}
