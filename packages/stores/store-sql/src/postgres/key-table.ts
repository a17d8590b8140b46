import type { IdempotencyListQuery } from "@countersign/idempotency";
import {
  keyBefore,
  pageOfRows,
  pruning,
  seenRow,
  type FirstChange,
  type KeyChange,
  type KeyTable,
  type ListedRows,
  type Row,
  type Seen,
  type SeenRow,
  type StoreGate,
} from "@countersign/idempotency/store";
import type { Engine } from "./engine.ts";
import { inTransaction } from "./errors.ts";
import { KeyStatements, pageStatement, type KeyStatement } from "./key-statements.ts";
import type { ResolvedPostgresOptions } from "./options.ts";
import { PrunedTable, type PrunedBatch } from "./pruning.ts";
import { integerOf, millisecondsOf, singleRow } from "./queryable.ts";
import { decodeKey, encodeKey } from "./stored-key.ts";

export const name = "postgres idempotency store";

/** The table of keys. Each step is one statement, in a transaction of its own. */
export class PostgresKeyTable extends PrunedTable implements KeyTable {
  protected readonly gate: StoreGate;
  readonly #sql: KeyStatements;

  constructor(engine: Engine, options: ResolvedPostgresOptions, gate: StoreGate) {
    const sql = new KeyStatements(options);
    super(name, engine, options, sql.removeExpired);
    this.gate = gate;
    this.#sql = sql;
  }

  /** Undefined where the key has a row: a claim then looks, and finds out whether it was somebody's transaction that stood in the way. */
  async add(key: string, row: FirstChange): Promise<number | undefined> {
    return this.#send(this.#sql.add(encodeKey(key), row));
  }

  async look(key: string): Promise<SeenRow | undefined> {
    const row = singleRow(await this.run(this.#sql.look, encodeKey(key)));
    // What was read may never be committed: to answer `done` by it could lose a payment.
    if (row["is_alone"] !== true) throw new Error(`${name}: ${inTransaction}`);
    return row["state"] === null ? undefined : rowOf(row);
  }

  async write(key: string, change: KeyChange, seen: Seen): Promise<number | undefined> {
    const fence = await this.#send(this.#sql.write(encodeKey(key), change, seen));
    // In somebody's transaction nothing is written either, and that is no answer: the look rejects.
    if (fence === undefined) await this.look(key);
    return fence;
  }

  async list({ state, cursor, limit }: IdempotencyListQuery): Promise<ListedRows> {
    // One row more than asked for tells whether another page follows.
    const found = await this.run(pageStatement(this.options, state), keyBefore(name, cursor), limit + 1);
    return pageOfRows(found, limit, (row) => ({ key: decodeKey(String(row["key"])), row: rowOf(row) }));
  }

  protected override batchOf(removed: readonly Row[]): PrunedBatch {
    return pruning.batchOf(removed);
  }

  async #send({ text, values }: KeyStatement): Promise<number | undefined> {
    const [written] = await this.runPlain(text, ...values);
    return written && integerOf(written["fence"]);
  }
}

export function rowOf(row: Row): SeenRow {
  return seenRow(row, {
    fence: integerOf(row["fence"]),
    version: integerOf(row["version"]),
    remainingMs: millisecondsOf(row["remaining_seconds"]),
    nowMs: integerOf(row["now_ms"]),
  });
}
