export { TaskError } from "./task-failure.ts";
export { createTaskQueue, type TaskQueue } from "./task-queue.ts";
export type {
  ClaimedTask,
  NewTask,
  OwnedTask,
  QueueSummary,
  TaskAdded,
  TaskClaim,
  TaskPage,
  TaskQuery,
  TaskRecord,
  WorkDecision,
  WorkStore,
  WorkStores,
} from "./work-store.ts";
