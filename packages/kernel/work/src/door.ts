export type { OutsideContext, TaskWork } from "./task-attempt.ts";
export { taskContext, type Answered } from "./task-queue.ts";
export {
  assertWorkerOptions,
  backoffOf,
  readWorkStores,
  workerTable,
  type ResolvedWorkerOptions,
  type WorkerOptions,
} from "./worker-options.ts";
export { reasonOf } from "./task-failure.ts";
export { Worker, type WorkerInit } from "./worker.ts";
