import { pruning, type Row, type StoreGate } from "@countersign/idempotency/store";
import type { Engine } from "./engine.ts";
import { type ResolvedPostgresOptions, factoryName } from "./options.ts";
import { timed } from "./statement-parts.ts";

/** What one step removed. */
export type PrunedBatch = ReturnType<typeof pruning.batchOf>;

/** How many rows one step removes; between two steps nothing is locked. */
const pruneBatchSize = 500;

/** Prunes a table by hand and in the background, until it is closed. */
export abstract class PrunedTable {
  readonly engine = "postgresql";
  protected abstract readonly gate: Pick<StoreGate, "assertUsable" | "close">;
  protected readonly server: Engine;
  protected readonly options: ResolvedPostgresOptions;
  readonly #name: string;
  readonly #removeSql: string;
  readonly #stopPruning: () => void;

  constructor(name: string, server: Engine, options: ResolvedPostgresOptions, removeSql: string) {
    this.#name = name;
    this.#removeSql = removeSql;
    this.server = server;
    this.options = options;
    this.#stopPruning = pruning.start({
      factory: factoryName,
      engine: this.engine,
      intervalMs: options.pruneIntervalMs,
      batchSize: pruneBatchSize,
      removeBatch: async () => (await this.#removeBatch()).rows,
    });
  }

  async prune(): Promise<number> {
    this.gate.assertUsable();
    return pruning.allRemote(pruneBatchSize, () => this.#removeBatch());
  }

  close(): void {
    this.gate.close();
    this.#stopPruning();
  }

  /** Runs a statement that reads the clock, which follows the values. */
  protected run(statement: string, ...values: unknown[]): Promise<readonly Row[]> {
    return this.runPlain(statement, ...timed(this.options, values));
  }

  protected runPlain(statement: string, ...values: unknown[]): Promise<readonly Row[]> {
    return this.server.run(this.#name, statement, values);
  }

  async #removeBatch(): Promise<PrunedBatch> {
    return this.batchOf(await this.run(this.#removeSql));
  }

  /** Counts every row; a table that counts less says so. */
  protected batchOf(removed: readonly Row[]): PrunedBatch {
    return { rows: removed.length, counted: removed.length };
  }
}

/** Removes locked rows by address: no plan walks the table. Asks twice, as a live row of another partition can have the same address. */
export function removal(table: string, isExpired: string, returning: string, column = "until_at"): string {
  return `DELETE FROM ${table} WHERE ${isExpired} AND ctid = ANY (ARRAY(
  SELECT ctid FROM ${table} WHERE ${isExpired} ORDER BY ${column} LIMIT ${pruneBatchSize} FOR UPDATE SKIP LOCKED)) RETURNING ${returning}`;
}
