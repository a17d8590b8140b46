export { entityOf, laneOf } from "./lanes.ts";
export { failuresAfter, keptFailures } from "./failures.ts";
export { sortableNanoseconds } from "./newest.ts";
export type { DeadTasks, NewestMark, TaskFailure } from "../work-store.ts";
export { WorkGate } from "./work-gate.ts";
