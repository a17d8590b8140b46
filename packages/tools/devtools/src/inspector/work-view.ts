import { withDeadline } from "@countersign/core";
import { withoutCredentials } from "@countersign/core/internal";
import type { QueueSummary, TaskRecord } from "@countersign/idempotency/work";
import { readThrown, serviceError, ServiceError } from "../loopback/problem.ts";
import type { InspectedWork } from "./options.ts";

type Stores = ReadonlyMap<string, InspectedWork>;

const timeoutMs = 5_000;
const mostQueues = 50;
// Each is read with its body, of up to a MiB, which is not shown.
const mostTasks = 20;
const mostText = 500;

type Queues =
  | { readonly store: string; readonly queues: readonly QueueSummary[] }
  | { readonly store: string; readonly problem: string };

/** What each store has; one that fails does not hide the others. */
export async function queuesOf(stores: Stores): Promise<{ readonly stores: readonly Queues[] }> {
  const asked = [...stores].map(async ([store, work]): Promise<Queues> => {
    try {
      return { store, queues: (await inTime(() => work.summaries())).slice(0, mostQueues) };
    } catch (error) {
      return { store, problem: problemOf(error) };
    }
  });
  return { stores: await Promise.all(asked) };
}

export interface WantedTasks {
  readonly store: string;
  readonly queue: string;
  readonly state: TaskRecord["state"];
}

/** The oldest tasks of a queue, without their bodies. Throws a ServiceError. */
export async function tasksOf(stores: Stores, { store, queue, state }: WantedTasks): Promise<object> {
  const work = stores.get(store);
  if (work === undefined) throw serviceError("not-found", "no store of this name: see the option work");
  try {
    const { tasks, cursor } = await inTime(() => work.list({ queue, state, limit: mostTasks }));
    return { tasks: tasks.map(taskOf), isCut: cursor !== undefined };
  } catch (error) {
    throw new ServiceError("work-unavailable", 503, problemOf(error));
  }
}

function taskOf({ body: _body, failures, ...task }: TaskRecord): object {
  const failure = failures.at(-1);
  return {
    ...task,
    failure: failure && { ...failure, reason: withoutCredentials(failure.reason) },
  };
}

/** What a store answers, within five seconds. */
export async function inTime<T>(ask: () => Promise<T>): Promise<T> {
  const late = (): Error => new Error(`no answer within ${timeoutMs} ms`);
  return withDeadline(Promise.resolve().then(ask), timeoutMs, late);
}

function problemOf(error: unknown): string {
  const { message } = readThrown(error);
  return `The store does not answer: ${withoutCredentials(message).slice(0, mostText)}`;
}
