import { randomUUID } from "node:crypto";
import { askStore, workSlices } from "@countersign/core/internal";
import type { TaskReports } from "./task-reports.ts";
import type { ResolvedWorkerOptions } from "./worker-options.ts";
import type { ClaimedTask, TaskFailure, TaskRecord, WorkStores } from "./work-store.ts";

export interface WorkerStoreInit {
  readonly queue: string;
  readonly stores: Pick<WorkStores<never>, "work">;
  readonly options: ResolvedWorkerOptions;
}

/** The steps that a worker takes of its store, each bounded in time. A late one goes on: its effect may come later. */
export class WorkerStore {
  readonly #init: WorkerStoreInit;
  readonly #reports: TaskReports;
  readonly #late = new Set<Promise<void>>();

  constructor(init: WorkerStoreInit, reports: TaskReports) {
    this.#init = init;
    this.#reports = reports;
  }

  /** Gives back what it brings when nobody waits for it any more. */
  async claim(limit: number): Promise<readonly ClaimedTask[]> {
    const { queue, stores, options } = this.#init;
    const claim = { queue, limit: Math.min(limit, 100), token: randomUUID(), leaseMs: options.leaseMs };
    let claimed: Promise<readonly ClaimedTask[]> | undefined;
    try {
      return await this.#ask("claim-tasks", () => (claimed = stores.work.claim(claim)));
    } catch (error) {
      // Else the tasks would be nobody's for a lease, and an attempt of each counted.
      if (claimed !== undefined) this.later(this.#giveBackOf(claimed));
      throw error;
    }
  }

  /** Notes what goes on although its step has failed; it must not reject. */
  later(work: Promise<void>): void {
    this.#late.add(work);
    void work.then(() => this.#late.delete(work));
  }

  /** Resolves when nothing goes on any more. */
  async settled(): Promise<void> {
    while (this.#late.size > 0) {
      // oxlint-disable-next-line no-await-in-loop -- what ends may leave something behind
      await Promise.all(this.#late);
    }
  }

  /** Gives the ids that are still owned. */
  async extend(tasks: readonly ClaimedTask[]): Promise<ReadonlySet<string>> {
    const { stores, options } = this.#init;
    return new Set(await this.#ask("extend-tasks", () => stores.work.extend(tasks, options.leaseMs)));
  }

  async fail(task: ClaimedTask, failure: TaskFailure): Promise<boolean> {
    return await this.#ask("fail-task", () => this.#init.stores.work.fail(task, failure));
  }

  async giveBack(tasks: readonly ClaimedTask[], delayMs: number): Promise<void> {
    if (tasks.length === 0) return;
    await this.#ask("give-back-tasks", () => this.#init.stores.work.giveBack(tasks, delayMs));
  }

  async read({ queue, id }: ClaimedTask): Promise<TaskRecord | undefined> {
    return await this.#ask("read-task", () => this.#init.stores.work.read(queue, id));
  }

  /** Whether each step holds the event loop, and this turn's part of it is used up. */
  get isOverdue(): boolean {
    return this.#init.stores.work.mode === "sync" && workSlices.over;
  }

  /** Does not reject. */
  async #giveBackOf(claimed: Promise<readonly ClaimedTask[]>): Promise<void> {
    let tasks: readonly ClaimedTask[];
    try {
      tasks = await claimed;
    } catch {
      // The claim has failed, which was told.
      return;
    }
    try {
      await this.giveBack(tasks, 0);
    } catch (error) {
      const message = `${tasks.length} tasks were claimed too late, and could not be given back: their leases decide`;
      this.#reports.storeFailed(message, error);
    }
  }

  async #ask<T>(step: string, call: () => Promise<T>): Promise<T> {
    const { stores, options } = this.#init;
    const { engine } = stores.work;
    // oxlint-disable-next-line no-await-in-loop -- yields to the event loop
    while (this.isOverdue) await workSlices.next();
    return await askStore({ engine, step, timeoutMs: options.storeTimeoutMs, name: "the work store" }, call);
  }
}
