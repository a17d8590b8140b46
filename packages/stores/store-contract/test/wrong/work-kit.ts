// How a store with a table of work has one thing wrong: SQLite in memory.
import type { Awaitable } from "@countersign/idempotency";
import type { NewTask, WorkStore } from "@countersign/idempotency/work";
import type { Connection } from "../../../store-sql/test/sqlite/connections.ts";
import type { WorkPlatform, WrongStores } from "../work-harness.ts";
import type { FoundBy } from "./wrong-store.ts";

export type WrongWork = FoundBy<WrongStores>;

export type Work = WorkStore<Connection, "sync">;

/** The stores whose table of work has these other methods. */
export const working =
  (change: (platform: WorkPlatform) => Partial<Work>): WrongStores =>
  (platform) => ({ work: { ...bound(platform.work), ...change(platform) } });

export const [lanes, tasks] = ["countersign_lanes", "countersign_tasks"] as const;
export const farOff = Number.MAX_SAFE_INTEGER;

/** The store that adds something else than it was given. */
export const adding = (change: (task: NewTask) => NewTask): WrongStores =>
  working(({ work }) => ({ add: (tx, queue, given) => work.add(tx, queue, given.map(change)) }));

/** The store that sends this statement too, behind the step. */
export const behind = (step: "claim" | "fail" | "retry" | "discard", sql: string): WrongStores =>
  working(({ work, database }) => ({
    [step]: async (...given: readonly never[]) => {
      const answer: unknown = await Reflect.apply(work[step], work, given);
      database.exec(sql);
      return answer;
    },
  }));

export const before = (sql: string): WrongStores =>
  working(({ work, database }) => ({
    claim(claim) {
      database.exec(sql);
      return work.claim(claim);
    },
  }));

export const finishing = (change: (platform: WorkPlatform) => Work["finish"]): WrongStores =>
  working((platform) => ({ finish: change(platform) }));

export function reversed<T>(items: readonly T[]): readonly T[] {
  const copy = [...items];
  copy.reverse();
  return copy;
}

/** SQLite answers at once. */
export function answerAtOnce<T>(answer: Awaitable<T>): T {
  return answer as T;
}

/** The store with methods that can be taken from it. */
export function bound<Store extends object>(store: Store): Store {
  const names = Object.getOwnPropertyNames(Object.getPrototypeOf(store));
  const methods = names.map(
    (name) => [name, (Reflect.get(store, name) as () => unknown).bind(store)] as const,
  );
  return { ...store, ...Object.fromEntries(methods) };
}
