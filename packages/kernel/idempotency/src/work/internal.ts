export type { TaskWork } from "./task-attempt.ts";
export { type Answered } from "./task-queue.ts";
export { backoffOf, workerOptions, type WorkerOptions } from "./worker-options.ts";
export { reasonOf } from "./task-failure.ts";
export { Worker } from "./worker.ts";
