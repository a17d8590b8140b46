import { OptionError } from "@countersign/core";
import type { Reporting } from "./task-reports.ts";
import type { WorkStores } from "./work-store.ts";

interface OwnQueue extends Pick<Reporting, "factory"> {
  readonly queue: string;
  readonly stores: Pick<WorkStores<never>, "work">;
}

// The factory of each queue's workers, by its table of work.
const factoriesOf = new WeakMap<object, Map<string, string>>();

/** Throws an OptionError where another factory's workers have the queue: each would end the other's tasks, as done. */
export function assertOwnQueue({ factory, queue, stores: { work } }: OwnQueue): void {
  const factories = factoriesOf.get(work) ?? new Map<string, string>();
  factoriesOf.set(work, factories);
  const other = factories.get(queue) ?? factory;
  if (other !== factory) {
    const what = `${other} works on the queue ${queue} of these stores already, and either would do the other's tasks; name another one`;
    throw new OptionError(factory, { what });
  }
  factories.set(queue, factory);
}
