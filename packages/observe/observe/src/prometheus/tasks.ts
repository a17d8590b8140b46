import type { Gauge } from "prom-client";
import { answersOf } from "./polling.ts";

/** The table of work of stores: `stores.work`. */
export interface TaskSummaries {
  summaries(): Promise<readonly QueueSummary[]>;
}

interface QueueSummary {
  readonly queue: string;
  readonly open: number;
  readonly dead: number;
  readonly oldestOpenMs: number | undefined;
}

/** Sets both gauges for each queue of each store. A store that does not answer has no values, which an alert can see. */
export async function countTasks(
  factoryName: string,
  stores: Readonly<Record<string, TaskSummaries>>,
  {
    tasks,
    oldest,
  }: { readonly tasks: Gauge<"store" | "queue" | "state">; readonly oldest: Gauge<"store" | "queue"> },
): Promise<void> {
  const answers = await answersOf(factoryName, "count the tasks", stores, (work) => work.summaries());
  tasks.reset();
  oldest.reset();
  for (const [store, queues] of answers) {
    for (const { queue, open, dead, oldestOpenMs = 0 } of queues) {
      tasks.set({ store, queue, state: "open" }, open);
      tasks.set({ store, queue, state: "dead" }, dead);
      oldest.set({ store, queue }, oldestOpenMs / 1_000);
    }
  }
}
