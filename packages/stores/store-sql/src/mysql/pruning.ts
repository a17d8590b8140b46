import type { SqlValue } from "@countersign/idempotency";
import { pruning, StoreGate, type Row } from "@countersign/idempotency/store";
import type { Engine } from "./engine.ts";
import { type ResolvedMysqlOptions, factoryName } from "./options.ts";
import { clockOf, waitingFor } from "./statement-parts.ts";
import { storedBytes } from "./values.ts";

/** What one step removed. */
export type PrunedBatch = ReturnType<typeof pruning.batchOf>;

/** How many rows one step removes; between two steps nothing is locked. */
const pruneBatchSize = 500;

interface Expired {
  readonly table: string;
  /** Its condition by the time "now". */
  readonly isExpired: (now: string) => string;
  /** What {@link PrunedTable.remember} reads of each row, besides the digest. */
  readonly columns: readonly string[];
}

/** Prunes a table by hand and in the background, until it is closed. */
export abstract class PrunedTable<Tx> {
  readonly engine = "mariadb";
  protected readonly gate: StoreGate;
  protected readonly server: Engine<Tx>;
  protected readonly options: ResolvedMysqlOptions<Tx>;
  protected readonly now: () => string;
  readonly #name: string;
  readonly #expired: Expired;
  readonly #stopPruning: () => void;

  constructor(name: string, server: Engine<Tx>, options: ResolvedMysqlOptions<Tx>, expired: Expired) {
    this.#name = name;
    this.#expired = expired;
    this.gate = new StoreGate(name);
    this.server = server;
    this.options = options;
    this.now = clockOf(options);
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

  protected alone(text: string, values: readonly SqlValue[]): Promise<readonly Row[]> {
    return this.server.alone(this.#name, text, values);
  }

  /** Rows that are locked are in use: left for the next time. */
  async #removeBatch(): Promise<PrunedBatch> {
    const { table, isExpired, columns } = this.#expired;
    const { database } = this.server;
    const bound = waitingFor(this.options.lockTimeoutMs);
    const find = `${bound}SELECT ${["digest", ...columns].join(", ")} FROM ${table} FORCE INDEX (pruning)
WHERE ${isExpired(this.now())} LIMIT ${pruneBatchSize} FOR UPDATE SKIP LOCKED`;
    const removed = await this.server.run(this.#name, async (tx) => {
      const rows = await database.query(tx, find, []);
      if (rows.length === 0) return rows;
      await this.remember(tx, rows);
      const digests = rows.map((row) => storedBytes(row["digest"]));
      const found = digests.map((_digest, index) => (index === 0 ? "SELECT ? AS digest" : "SELECT ?"));
      // Each by its key. By a list of them a server may walk through the whole table, and would wait for rows that are in use.
      const remove = `${bound}DELETE gone FROM (${found.join(" UNION ALL ")}) AS found
STRAIGHT_JOIN ${table} AS gone FORCE INDEX (PRIMARY) ON gone.digest = found.digest`;
      await database.query(tx, remove, digests);
      return rows;
    });
    return this.batchOf(removed);
  }

  /** Keeps, in the same commit, what must outlive the rows. */
  protected remember(_tx: Tx, _rows: readonly Row[]): Promise<void> {
    return Promise.resolve();
  }

  /** Counts every row; a table that counts less says so. */
  protected batchOf(removed: readonly Row[]): PrunedBatch {
    return { rows: removed.length, counted: removed.length };
  }
}
