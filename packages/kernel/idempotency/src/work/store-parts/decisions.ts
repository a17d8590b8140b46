// What follows which row of a table of tasks. Engines read rows, and write what is decided here, where the rows are still as they were read.
import { leaseExpired } from "../../store.ts";
import type { TaskFailure, TaskRecord, WorkDecision } from "../work-store.ts";
import { failuresAfter } from "./failures.ts";

/** A lane that is due, as it was read. Times are microseconds since 1970, by the engine's clock. */
export interface SeenLane {
  /** The end of the lease under which a claim owns one of its tasks; undefined if nobody owns one. */
  readonly leasedUntilUs: number | undefined;
  /** When its oldest open task may begin; undefined if no task of it is open. */
  readonly headDueUs: number | undefined;
}

export interface LaneDecision {
  /** True if the owner has let its lease end: its attempt has failed, and the lane is nobody's. */
  readonly isLapsed: boolean;
  /** `take`: the claim owns the oldest task. `remove`: no task is left. Else: when a claim looks at the lane again. */
  readonly next: "take" | "remove" | { readonly dueUs: number };
}

/** What a claim does with a lane that is due. */
export function decideLane({ leasedUntilUs, headDueUs }: SeenLane, nowUs: number): LaneDecision {
  // The owner has renewed its lease, which is in the row of its task.
  if (leasedUntilUs !== undefined && leasedUntilUs > nowUs) {
    return { isLapsed: false, next: { dueUs: leasedUntilUs } };
  }
  const isLapsed = leasedUntilUs !== undefined;
  if (headDueUs === undefined) return { isLapsed, next: "remove" };
  return { isLapsed, next: headDueUs > nowUs ? { dueUs: headDueUs } : "take" };
}

/** A task whose attempt ends, or that an operator decides on, as it was read. */
export interface SeenTask {
  readonly attempts: number;
  /** JSON. */
  readonly failures: string;
  readonly nowMs: number;
}

/** What is written into the row of a task. */
export interface TaskChange {
  readonly state: TaskRecord["state"];
  readonly attempts?: number;
  /** JSON. */
  readonly failures?: string;
  /** From now; absent where the time stays. */
  readonly dueInMs?: number;
}

/** The attempt's effect was committed. */
export const doneTask: TaskChange = { state: "done" };

/** The attempt has failed: the task waits for the next one, or is dead. */
export function failedTask(seen: SeenTask, { reason, retryInMs }: TaskFailure): TaskChange {
  const failures = withFailure(seen, reason);
  return retryInMs === undefined
    ? { state: "dead", failures }
    : { state: "open", failures, dueInMs: retryInMs };
}

/** The attempt had no effect, and does not count. */
export function returnedTask({ attempts }: SeenTask, delayMs: number): TaskChange {
  return { state: "open", attempts: attempts - 1, dueInMs: delayMs };
}

/** The attempt's owner has let its lease end. */
export function lapsedTask(seen: SeenTask): TaskChange {
  return { state: "open", failures: withFailure(seen, leaseExpired) };
}

/** An operator ends a dead task. */
export function discardedTask(seen: SeenTask, { by, note }: WorkDecision): TaskChange {
  return { state: "done", failures: withFailure(seen, `discarded by ${by}: ${note}`) };
}

function withFailure({ attempts, failures, nowMs }: SeenTask, reason: string): string {
  return failuresAfter(failures, { atMs: nowMs, attempt: attempts, reason });
}
