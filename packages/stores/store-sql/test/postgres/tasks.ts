import { fromPg } from "@countersign/store-sql/pg";
import type { Awaitable } from "@countersign/idempotency";
import type { NewTask, OwnedTask, TaskClaim } from "@countersign/idempotency/work";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import type { PoolClient } from "pg";
import { connectPool } from "./connections.ts";
import { type Payouts, newPayouts } from "./payouts.ts";

export const queue = "q";

let tokens = 0;

export function taskClaim(more: Partial<TaskClaim> = {}): TaskClaim {
  return { queue, limit: 100, token: `worker ${tokens++}`, leaseMs: 60_000, ...more };
}

export interface Work extends Payouts {
  /** Adds tasks, named by `id` or `id@entity`, in a transaction of their own. */
  readonly addAll: (...names: (string | NewTask)[]) => Promise<string[]>;
  readonly claimAll: (more?: Partial<TaskClaim>) => Promise<string[]>;
  /** A transaction that stays open until it is told to end. */
  readonly open: <T>(work: (tx: PoolClient) => Awaitable<T>) => Promise<OpenTransaction<T>>;
  readonly finishAlone: (task: OwnedTask) => Promise<boolean>;
}

interface OpenTransaction<T> {
  readonly result: T;
  readonly tx: PoolClient;
  readonly commit: () => Promise<void>;
  readonly rollBack: () => Promise<void>;
}

export async function newWork(...[options, config]: Parameters<typeof newPayouts>): Promise<Work> {
  const payouts = await newPayouts(
    { database: fromPg(connectPool({ max: 20, ...config })), ...options },
    config,
  );
  const { work, transactions } = payouts;
  return {
    ...payouts,
    async addAll(...names) {
      const added = await transactions.run((tx) => work.add(tx, queue, names.map(taskOf)));
      return added.map(({ status }) => status);
    },
    async claimAll(more) {
      return (await work.claim(taskClaim(more))).map(({ id }) => id);
    },
    open: (step) => openTransaction(payouts, step),
    finishAlone: (task) => transactions.run((tx) => work.finish(tx, task)),
  };
}

export function taskOf(task: string | NewTask): NewTask {
  if (typeof task !== "string") return task;
  const [id = "", entity] = task.split("@");
  return { id, entity, body: `body of ${id}` };
}

async function openTransaction<T>(
  { transactions }: Payouts,
  step: (tx: PoolClient) => Awaitable<T>,
): Promise<OpenTransaction<T>> {
  let end = (_commits: boolean): void => {};
  const told = new Promise<boolean>((resolve) => (end = resolve));
  const rolledBack = new Error("rolled back");
  let ended: Promise<unknown> = Promise.resolve();
  const begun = await new Promise<{ readonly result: T; readonly tx: PoolClient }>((resolve, reject) => {
    ended = transactions
      .run(async (tx) => {
        resolve({ result: await step(tx), tx });
        if (!(await told)) throw rolledBack;
      })
      .catch((error: unknown) => {
        reject(error);
        if (error !== rolledBack) throw error;
      });
    ended.catch(() => {});
  });
  const settle = async (commits: boolean): Promise<void> => {
    end(commits);
    await ended;
  };
  afterTest(() => settle(false));
  return { ...begun, commit: () => settle(true), rollBack: () => settle(false) };
}
