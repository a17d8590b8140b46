import type { IdempotencyOwnership, IdempotencyStore } from "@countersign/idempotency";
import { StoreGate, TableStore } from "@countersign/idempotency/store";
import type { Engine } from "./engine.ts";
import { MysqlKeyTable, name } from "./key-table.ts";
import type { ResolvedMysqlOptions } from "./options.ts";

/** The idempotency store on MySQL and MariaDB. `list` pages in the order of the keys' digests, and rejects with a TypeError on a damaged cursor. */
export class MysqlIdempotencyStore<Tx> extends TableStore<"async", Tx> implements IdempotencyStore<Tx> {
  constructor(engine: Engine<Tx>, options: ResolvedMysqlOptions<Tx>) {
    const { retentionMs } = options;
    super(new MysqlKeyTable(engine, options), { mode: "async", retentionMs, gate: new StoreGate(name) });
  }

  /**
   * Completes the key inside the transaction `tx` of your library. Rejects when none is open. `lost` also on a done key. Call it first:
   * from then on nobody takes the key over.
   */
  completeIn(tx: Tx, key: string, token: string): Promise<IdempotencyOwnership> {
    return this.completeWithin(tx, key, token);
  }
}
