import type { TransactionMode } from "@countersign/idempotency";
import {
  answerOf,
  pruning,
  runStepsIn,
  StoreGate,
  type PrunedBatch,
  type Returned,
  type Steps,
} from "@countersign/idempotency/store";
import type { Expired, SqlEngine } from "./engine.ts";

/** Prunes a table by hand and in the background, until it is closed. */
export abstract class PrunedTable<Mode extends TransactionMode> {
  readonly engine: string;
  readonly mode: Mode;
  /** Begins messages. */
  readonly name: string;
  protected readonly gate: StoreGate;
  readonly #server: SqlEngine<never, Mode>;
  readonly #expired: Expired;
  readonly #stopPruning: () => void;

  constructor(server: SqlEngine<never, Mode>, name: string, expired: Expired) {
    this.engine = server.engine;
    this.mode = server.mode;
    this.name = name;
    this.gate = server.createGate?.(name) ?? new StoreGate(name);
    this.#server = server;
    this.#expired = expired;
    this.#stopPruning = pruning.start({
      factory: server.factory,
      engine: server.engine,
      intervalMs: server.pruneIntervalMs,
      batchSize: server.pruneBatchSize,
      removeBatch: () =>
        server.isOccupied?.() === true ? undefined : runStepsIn(server.mode, this.#removed()),
    });
  }

  prune(): Returned<Mode, number> {
    return this.run(() => this.#pruneAll());
  }

  close(): void {
    this.gate.close();
    this.#stopPruning();
  }

  /** Runs a step of the store: one with promises rejects where one without throws. */
  protected run<T>(steps: () => Steps<T>): Returned<Mode, T> {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what the mode says
    return runStepsIn(this.mode, steps()) as Returned<Mode, T>;
  }

  *#pruneAll(): Steps<number> {
    this.gate.assertUsable();
    return yield* pruning.all(this.#server.pruneBatchSize, () => this.#removeBatch());
  }

  *#removed(): Steps<number> {
    return (yield* this.#removeBatch()).rows;
  }

  *#removeBatch(): Steps<PrunedBatch> {
    const removed = yield* answerOf(this.#server.removeBatch(this.name, this.#expired));
    return this.#expired.areKeys === true
      ? pruning.batchOf(removed)
      : { rows: removed.length, counted: removed.length };
  }
}
