import type { IdempotencyOwnership, IdempotencyStore } from "@countersign/idempotency";
import { StoreGate, TableStore } from "@countersign/idempotency/store";
import type { Engine } from "./engine.ts";
import { name, PostgresKeyTable } from "./key-table.ts";
import type { ResolvedPostgresOptions } from "./options.ts";
import type { PostgresTransaction } from "./queryable.ts";

/** The idempotency store on PostgreSQL. `list` pages in the order of the keys' bytes, and rejects with a TypeError on a damaged cursor. */
export class PostgresIdempotencyStore
  extends TableStore<"async", PostgresTransaction>
  implements IdempotencyStore<PostgresTransaction>
{
  constructor(engine: Engine, options: ResolvedPostgresOptions) {
    const gate = new StoreGate(name);
    const { retentionMs } = options;
    super(new PostgresKeyTable(engine, options, gate), { mode: "async", retentionMs, gate });
  }

  /**
   * Marks the key done inside the transaction that is open on `tx`, a client of the same database, and makes that transaction's commit durable
   * where synchronous_commit is off. `lost` on a done key. Rejects when no transaction is open. Call it first: from then on nobody takes the
   * key over.
   */
  completeIn(tx: PostgresTransaction, key: string, token: string): Promise<IdempotencyOwnership> {
    return this.completeWithin(tx, key, token);
  }
}
