import type { Step } from "../machine/explorer.ts";
import type { WorkSwitch } from "./switches.ts";

/** What is explored: the tasks of one entity, added by transactions and worked on by several workers. */
export interface WorkRules {
  readonly tasks: number;
  readonly workers: number;
  /** `inside`: in the transaction in which the task ends. `outside`: the worker acts, then a transaction ends the task. */
  readonly handler: "inside" | "outside";
  readonly maxAttempts: number;
  readonly hasOperator: boolean;
  readonly bugs: Readonly<Partial<Record<WorkSwitch, true>>>;
}

export interface Task {
  /** `adding`: in an open transaction. */
  readonly state: "none" | "adding" | "open" | "dead" | "done";
  /** Whether what caused the task has committed. */
  readonly isCaused: boolean;
  /** Whoever caused it was told that it is kept. */
  readonly isAcknowledged: boolean;
  /** Its place among the tasks of its entity. */
  readonly number: number;
  /** The place that it was given when it was added. */
  readonly added: number;
  readonly attempts: number;
  /** How often a transaction has committed its effect, 2 for more. */
  readonly applied: number;
  /** Whether a worker has acted for it outside. */
  readonly isActed: boolean;
}

export interface Worker {
  /**
   * `claimed`: has a task. `handled`: its effect is written, or done outside. `ending`: the task's end is written, the lane locked.
   * `unsure`: COMMIT was sent.
   */
  readonly phase: "idle" | "claimed" | "handled" | "ending" | "unsure";
  readonly task: number;
  /** Of the claim that it made: the lane's count then. */
  readonly claim: number;
}

export interface Lane {
  readonly exists: boolean;
  /** The claim that has it; 0 for none. */
  readonly claim: number;
  /** Whether its lease has ended. */
  readonly isExpired: boolean;
  /** Who has locked the row: `a` for a transaction that adds, `w` for one that ends a task. */
  readonly lock: { readonly by: "a" | "w"; readonly index: number } | undefined;
}

export interface WorkState {
  readonly tasks: readonly Task[];
  readonly workers: readonly Worker[];
  readonly lane: Lane;
  readonly nextNumber: number;
  /** How often an operator has let dead tasks run again. */
  readonly retries: number;
}

export interface WorkStep extends Step {
  readonly told?: "claimed" | "committed" | "acted" | "acknowledged" | undefined;
  readonly task?: number | undefined;
}

export type Take = (step: WorkStep, after: WorkState) => void;

export const nothing: Task = {
  state: "none",
  isCaused: false,
  isAcknowledged: false,
  number: 0,
  added: 0,
  attempts: 0,
  applied: 0,
  isActed: false,
};

const idle: Worker = { phase: "idle", task: -1, claim: 0 };

export function initialWork({ tasks, workers }: WorkRules): WorkState {
  return {
    tasks: Array.from({ length: tasks }, () => nothing),
    workers: Array.from({ length: workers }, () => idle),
    lane: { exists: false, claim: 0, isExpired: false, lock: undefined },
    nextNumber: 1,
    retries: 0,
  };
}

export function withTask(state: WorkState, index: number, changes: Partial<Task>): WorkState {
  const tasks = state.tasks.slice();
  tasks[index] = { ...tasks[index]!, ...changes };
  return { ...state, tasks };
}

export function withWorker(state: WorkState, index: number, changes: Partial<Worker>): WorkState {
  const workers = state.workers.slice();
  workers[index] = { ...workers[index]!, ...changes };
  return { ...state, workers };
}

export function idleAgain(state: WorkState, index: number): WorkState {
  return withWorker(state, index, idle);
}

export function withLane(state: WorkState, changes: Partial<Lane>): WorkState {
  return { ...state, lane: { ...state.lane, ...changes } };
}

/** The oldest open task; -1 without one. */
export function headOf({ tasks }: WorkState): number {
  return tasks.reduce(
    (head, { state, number }, index) =>
      state === "open" && (head === -1 || number < tasks[head]!.number) ? index : head,
    -1,
  );
}

/** States that differ in numbers alone are one: only their order counts. */
export function encodeWork({ tasks, workers, lane, retries }: WorkState): string {
  const claims = inOrder([0, lane.claim, ...workers.map(({ claim }) => claim)]);
  const order = inOrder([0, ...tasks.flatMap(({ number, added }) => [number, added])]);
  const told = tasks.map(
    ({ state, isCaused, isAcknowledged, number, added, attempts, applied, isActed }) =>
      `${state} ${isCaused} ${isAcknowledged} ${order.indexOf(number)} ${order.indexOf(added)} ${attempts} ${applied} ${isActed}`,
  );
  const working = workers.map(({ phase, task, claim }) => `${phase} ${task} ${claims.indexOf(claim)}`);
  working.sort();
  const lock =
    lane.lock === undefined ? "-" : `${lane.lock.by}${lane.lock.by === "a" ? lane.lock.index : ""}`;
  const locker = lane.lock?.by === "w" ? workers[lane.lock.index]!.task : "";
  return `${told.join("|")}#${working.join("|")}#${lane.exists} ${claims.indexOf(lane.claim)} ${lane.isExpired} ${lock}${locker}#${retries}`;
}

function inOrder(numbers: readonly number[]): readonly number[] {
  const distinct = [...new Set(numbers)];
  distinct.sort((one, other) => one - other);
  return distinct;
}
