import { pruning, type PrunedBatch, type StoreGate } from "@countersign/idempotency/store";
import { type SqliteStatement, createGate, isInTransaction, withImmediateTransaction } from "./connection.ts";
import type { ResolvedSqliteOptions } from "./options.ts";

/** How many rows one step removes: meanwhile this process does nothing else, and no other process writes. */
export const pruneBatchSize = 100;

/** Prunes a table by hand and in the background, until it is closed. */
export abstract class PrunedTable {
  readonly engine = "sqlite";
  protected readonly gate: StoreGate;
  protected readonly options: ResolvedSqliteOptions;
  readonly #stopPruning: () => void;

  /** `factory` is named in notices. */
  constructor(name: string, factory: string, options: ResolvedSqliteOptions) {
    const { database, pruneIntervalMs: intervalMs } = options;
    this.options = options;
    this.gate = createGate(name, database);
    this.#stopPruning = pruning.start({
      factory,
      engine: this.engine,
      intervalMs,
      batchSize: pruneBatchSize,
      // The caller may have a transaction open across an await: pruning must neither join it nor fail it.
      removeBatch: () => (isInTransaction(database) ? undefined : this.removeBatch().rows),
    });
  }

  prune(): number {
    this.gate.assertUsable();
    return pruning.all(pruneBatchSize, () => this.removeBatch());
  }

  close(): void {
    this.gate.close();
    this.#stopPruning();
  }

  protected abstract removeBatch(): PrunedBatch;

  /** Removes a batch in which every row counts. `removeExpired` takes the time and the size. */
  protected removeWhole(removeExpired: SqliteStatement<unknown>): PrunedBatch {
    const { database, now } = this.options;
    const remove = () => removeExpired.run(now(), pruneBatchSize);
    const rows = Number(withImmediateTransaction(database, remove).changes);
    return { rows, counted: rows };
  }
}
