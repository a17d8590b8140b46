import assert, { AssertionError } from "node:assert/strict";
import { type Steps, answerOf } from "@countersign/idempotency/internal";
import type {
  ClaimedTask,
  NewTask,
  OwnedTask,
  TaskAdded,
  TaskClaim,
  TaskRecord,
  WorkStores,
} from "@countersign/idempotency/work";
import { longLeaseMs } from "./claims.ts";
import { type CaseDefinition, rules } from "./contract.ts";
import type { WorkStoreHarness } from "./harness.ts";
import { inTransaction } from "./payments.ts";
import { outcomeOf } from "./waiting.ts";

export type Work = WorkStoreHarness<unknown>;
export type WorkCase = CaseDefinition<Work>;
export const workRules = rules<Work>;
type Stores = WorkStores<unknown>;

export const queue = "reports";
export const entity = "payout-7";

export function taskOf(id: string, more: Partial<NewTask> = {}): NewTask {
  return { id, body: `body of ${id}`, ...more };
}

/** Tasks of {@link entity}. */
export function inOrder(...ids: readonly string[]): readonly NewTask[] {
  return ids.map((id) => taskOf(id, { entity }));
}

/** Runs the steps in a transaction. After a conflict it runs them again, as the contract of faultOf() has it. */
export async function transact<T>(stores: Stores, steps: (tx: unknown) => Steps<T>): Promise<T> {
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
    const { value, error } = await outcomeOf(async () => ({ result: await inTransaction(stores, steps) }));
    if (value !== undefined) return value.result;
    if (stores.transactions.faultOf(error.thrown) !== "conflict") throw error.thrown;
  }
}

/** Adds tasks in a transaction of their own. */
export async function add(
  { store }: Work,
  tasks: readonly NewTask[],
  to: string = queue,
): Promise<readonly TaskAdded[]> {
  return transact(store, (tx) => answerOf(store.work.add(tx, to, tasks)));
}

/** Ends the task in a transaction of its own. */
export async function finish({ store }: Pick<Work, "store">, task: OwnedTask): Promise<boolean> {
  return transact(store, (tx) => answerOf(store.work.finish(tx, task)));
}

/** Whether anything is in the way of a rollback: runs the steps, then throws. */
export async function rolledBack(stores: Stores, steps: (tx: unknown) => Steps<unknown>): Promise<void> {
  const failure = new Error("rolled back");
  const { error } = await outcomeOf(() =>
    inTransaction(stores, function* failing(tx): Steps<void> {
      yield* steps(tx);
      throw failure;
    }),
  );
  if (error?.thrown !== failure) throw error?.thrown;
}

let claims = 0;

/** As many tasks as can be claimed, under a token of this claim's own. */
export async function claim(
  { work }: Stores,
  more: Partial<TaskClaim> = {},
): Promise<readonly ClaimedTask[]> {
  claims += 1;
  return work.claim({ queue, limit: 100, token: `claim-${claims}`, leaseMs: longLeaseMs, ...more });
}

/** The task of this id, which must be due and alone. */
export async function claimOne(
  stores: Stores,
  id: string,
  more: Partial<TaskClaim> = {},
): Promise<ClaimedTask> {
  const tasks = await claim(stores, more);
  const [task] = tasks;
  if (task?.id === id && tasks.length === 1) return task;
  throw new Error(`${id} must be what is due, alone; claimed ${JSON.stringify(idsOf(tasks))}`);
}

/** Claims and finishes whatever is due until nothing is. Returns the ids in that order. */
export async function drain(harness: Work, more: Partial<TaskClaim> = {}): Promise<readonly string[]> {
  const tasks = await claim(harness.store, more);
  for (const task of tasks) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    if (!(await finish(harness, task)))
      throw new AssertionError({ message: `${task.id} must be its owner's` });
  }
  return tasks.length === 0 ? [] : [...idsOf(tasks), ...(await drain(harness, more))];
}

export function idsOf(tasks: readonly { readonly id: string }[]): readonly string[] {
  return tasks.map(({ id }) => id);
}

/** The record of a task that must be there. */
export async function recordOf({ work }: Stores, id: string, of: string = queue): Promise<TaskRecord> {
  const record = await work.read(of, id);
  if (record === undefined) throw new AssertionError({ message: `there must be a task ${id}` });
  return record;
}

/** Claims the task, which must be due and alone, and gives it up. */
export async function kill(stores: Stores, id: string, reason = "no use"): Promise<void> {
  const task = await claimOne(stores, id);
  if (!(await stores.work.fail(task, { reason, retryInMs: undefined })))
    throw new Error(`${id} must be its owner's`);
}

/** Throws unless the last failure says `reason` of the first attempt, at the task's end; two statements of an engine may read its clock. */
export function assertEndedBy({ failures, endedAtMs }: TaskRecord, reason: string): void {
  const last = failures.at(-1);
  assert.deepEqual({ ...last, atMs: 0 }, { atMs: 0, attempt: 1, reason });
  const sinceMs = (endedAtMs ?? 0) - (last?.atMs ?? 0);
  assert.ok(sinceMs >= 0 && sinceMs < 1_000, "the failure and the end are of one time");
}
