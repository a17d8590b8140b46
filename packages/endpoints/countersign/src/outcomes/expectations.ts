import { quoteForLog } from "@countersign/core";
import { publishFailure } from "@countersign/core/internal";
import { TaskError, type ClaimedTask, type WorkStores } from "@countersign/idempotency/work";
import { Worker } from "@countersign/idempotency/work/internal";
import { factoryName, type OutcomesOptions, type ResolvedOutcomesOptions } from "./options.ts";

/** Why an expectation fails: no outcome is there. It looks again later. */
class Overdue extends TaskError {}

const mostLooks = 10_000;

/** Queues a look for each expected outcome, for the time at which it is due. */
export class Expectations<Tx> {
  readonly worker: Worker<Tx>;
  readonly #stores: WorkStores<Tx>;
  readonly #queue: string;
  readonly #expectWithinMs: number | undefined;
  readonly #onOverdue: OutcomesOptions<Tx>["onOverdue"];

  constructor(
    stores: WorkStores<Tx>,
    options: ResolvedOutcomesOptions,
    onOverdue: OutcomesOptions<Tx>["onOverdue"],
  ) {
    this.#stores = stores;
    this.#queue = options.queue;
    this.#expectWithinMs = options.expectWithinMs;
    this.#onOverdue = onOverdue;
    this.worker = new Worker<Tx>({
      factory: factoryName,
      queue: this.#ownQueue,
      stores,
      options: { ...options, maxAttempts: mostLooks },
      workOf: ({ id }) => ({ outside: () => this.#look(id) }),
      onFailure: (task, error) => this.#failed(task, error),
    });
  }

  get #ownQueue(): string {
    return `${this.#queue}-expected`;
  }

  add(tx: Tx, idempotencyKey: string): ReturnType<WorkStores<Tx>["work"]["add"]> {
    const delayMs = this.#expectWithinMs;
    if (delayMs === undefined) {
      throw new TypeError("outcomes.expect(): give createOutcomes() the option expectWithinMs");
    }
    return this.#stores.work.add(tx, this.#ownQueue, [{ id: idempotencyKey, body: "", delayMs }]);
  }

  async #look(idempotencyKey: string): Promise<void> {
    if ((await this.#stores.work.read(this.#queue, idempotencyKey)) !== undefined) return;
    throw new Overdue("no outcome was reported in time", { retryInMs: this.#expectWithinMs });
  }

  #failed({ id, addedAtMs }: ClaimedTask, error: unknown): unknown {
    const withinMs = this.#expectWithinMs;
    if (!(error instanceof Overdue) || withinMs === undefined) return undefined;
    publishFailure({
      guard: factoryName,
      code: "outcome-overdue",
      message: `no outcome of the payout ${quoteForLog(id)} was reported within ${withinMs} ms`,
    });
    // Two clocks: the engine's, and this process's.
    const sinceMs = Math.max(Date.now() - addedAtMs, withinMs);
    return this.#onOverdue?.({ idempotencyKey: id, sinceMs });
  }
}
