import {
  type PrunedBatch,
  type Row,
  StoreGate,
  pruneAllRemote,
  startPruning,
} from "@countersign/idempotency/store";
import type { Engine } from "./engine.ts";
import { type ResolvedPostgresOptions, factoryName } from "./options.ts";
import { timed } from "./statement-parts.ts";

/** How many rows one step removes; between two steps nothing is locked. */
export const pruneBatchSize = 500;

/** Prunes a table by hand and in the background, until it is closed. */
export abstract class PrunedTable {
  readonly engine = "postgresql";
  protected readonly gate: StoreGate;
  protected readonly server: Engine;
  protected readonly options: ResolvedPostgresOptions;
  readonly #name: string;
  readonly #stopPruning: () => void;

  constructor(name: string, server: Engine, options: ResolvedPostgresOptions) {
    this.#name = name;
    this.gate = new StoreGate(name);
    this.server = server;
    this.options = options;
    this.#stopPruning = startPruning({
      factory: factoryName,
      engine: this.engine,
      intervalMs: options.pruneIntervalMs,
      batchSize: pruneBatchSize,
      removeBatch: async () => (await this.removeBatch()).rows,
    });
  }

  async prune(): Promise<number> {
    this.gate.assertUsable();
    return pruneAllRemote(pruneBatchSize, () => this.removeBatch());
  }

  close(): void {
    this.gate.close();
    this.#stopPruning();
  }

  protected abstract removeBatch(): Promise<PrunedBatch>;

  /** Runs a statement that reads the clock, which follows the values. */
  protected run(statement: string, ...values: unknown[]): Promise<readonly Row[]> {
    return this.server.run(this.#name, statement, timed(this.options, values));
  }
}

/** Counts every row of a batch. */
export function wholeBatch({ length }: readonly Row[]): PrunedBatch {
  return { rows: length, counted: length };
}
