export { entityOf, laneOf } from "./lanes.ts";
export { failuresAfter, keptFailures } from "./failures.ts";
export { sortableNanoseconds } from "./newest.ts";
export { WorkGate } from "./work-gate.ts";
