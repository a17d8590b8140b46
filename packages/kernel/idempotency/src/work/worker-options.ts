import {
  hasMethods,
  option,
  optionError,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/internal";
import { OptionError } from "@countersign/core";
import { transactionOptions, type TransactionOptions } from "../internal.ts";
import type { WorkStore, WorkStores } from "./work-store.ts";

/** How a worker goes about the tasks of its queue. */
export interface WorkerOptions extends Pick<
  TransactionOptions,
  "waitMs" | "storeTimeoutMs" | "idleTimeoutMs"
> {
  /** The number of tasks that run at a time in this process. Each may hold a connection of the pool. Default 4. */
  readonly concurrency?: number | undefined;
  /** How long a silent worker keeps its tasks, in milliseconds; a living one renews. Default 30,000. */
  readonly leaseMs?: number | undefined;
  /** The time until an attempt's `signal` aborts, in milliseconds. Default 30,000. */
  readonly timeoutMs?: number | undefined;
  /** How often to look for tasks that other processes added, in milliseconds. Default 1,000. */
  readonly pollMs?: number | undefined;
  /** The attempts after which a task is a dead letter. Default 20: with the other defaults, eight hours. */
  readonly maxAttempts?: number | undefined;
  /** The pause after the first failure, in milliseconds; each further one doubles it, give or take a quarter. Default 1,000. */
  readonly backoffMs?: number | undefined;
  /** The longest pause, in milliseconds. Default 3,600,000. */
  readonly maxBackoffMs?: number | undefined;
}

const { waitMs, storeTimeoutMs, idleTimeoutMs } = transactionOptions.table;

const workerTable = {
  waitMs,
  storeTimeoutMs,
  idleTimeoutMs,
  concurrency: option.integer({ min: 1, max: 100, fallback: 4 }),
  leaseMs: option.integer({ min: 1_000, max: 3_600_000, fallback: 30_000 }),
  timeoutMs: option.integer({ min: 1, max: 86_400_000, fallback: 30_000 }),
  pollMs: option.integer({ min: 10, max: 3_600_000, fallback: 1_000 }),
  maxAttempts: option.integer({ min: 1, max: 10_000, fallback: 20 }),
  backoffMs: option.integer({ min: 1, max: 3_600_000, fallback: 1_000 }),
  maxBackoffMs: option.integer({ min: 1, max: 86_400_000, fallback: 3_600_000 }),
} satisfies OptionTable<WorkerOptions, unknown>;

/** How a receiver reads its worker's options. */
export const workerOptions = {
  table: workerTable,
  readStores: readWorkStores,
  queueName: queueNameUpTo,
  assertFit: assertWorkerOptions,
};

export type ResolvedWorkerOptions = ReadOptions<typeof workerTable>;

/** Throws an OptionError where a lease would end before its renewal was answered. */
function assertWorkerOptions(owner: OptionOwner, options: ResolvedWorkerOptions): void {
  // Renewed after a third of the lease.
  if (options.storeTimeoutMs * 2 > options.leaseMs) {
    throw optionError(
      owner,
      "storeTimeoutMs",
      `at most half of leaseMs (${options.leaseMs})`,
      options.storeTimeoutMs,
    );
  }
  if (options.maxBackoffMs < options.backoffMs) {
    throw optionError(owner, "maxBackoffMs", "at least backoffMs", options.maxBackoffMs);
  }
}

/** Reads the name of a queue. Throws an OptionError. */
function queueNameUpTo(longest = 64): (value: unknown, owner: OptionOwner, name: string) => string {
  const queueName = new RegExp(`^[a-z0-9-]{1,${longest}}$`);
  return (value, owner, name) => {
    if (typeof value === "string" && queueName.test(value)) return value;
    throw optionError(owner, name, `1 to ${longest} of a-z, 0-9 and -`, value);
  };
}

const workMethods = ["add", "claim", "extend", "finish", "fail", "giveBack", "advance", "read"] as const;

/** Reads the option `stores`. Throws an OptionError that says what to give. */
function readWorkStores<Tx>(stores: unknown, owner: OptionOwner, name: string): WorkStores<Tx> {
  const work: unknown = Reflect.get(transactionOptions.readStores<Tx>(stores, owner, name), "work");
  if (hasMethods<WorkStore<Tx>>(work, ...workMethods)) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it has the methods; what they answer is checked on use
    return stores as WorkStores<Tx>;
  }
  throw new OptionError(owner, {
    option: name,
    what: "has no table of work: take createStores({ database })",
  });
}

/** The pause before the next attempt, in milliseconds. `attempt` is the one that failed, from 1. */
export function backoffOf(
  attempt: number,
  { backoffMs, maxBackoffMs }: Pick<ResolvedWorkerOptions, "backoffMs" | "maxBackoffMs">,
): number {
  const pauseMs = Math.min(backoffMs * 2 ** Math.min(attempt - 1, 40), maxBackoffMs);
  return Math.ceil(pauseMs * (0.75 + Math.random() / 2));
}
