export {
  decideLane,
  discardedTask,
  doneTask,
  failedTask,
  lapsedTask,
  returnedTask,
  type LaneDecision,
  type SeenLane,
  type SeenTask,
  type TaskChange,
} from "./decisions.ts";
export { entityOf, laneOf } from "./lanes.ts";
export { keptFailures } from "./failures.ts";
export { sortableNanoseconds } from "./newest.ts";
export type { DeadTasks, NewestMark, TaskFailure } from "../work-store.ts";
export { WorkGate } from "./work-gate.ts";
