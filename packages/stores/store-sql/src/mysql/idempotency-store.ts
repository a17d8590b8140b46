import { StoreGate, TableStore } from "@countersign/idempotency/store";
import type { Engine } from "./engine.ts";
import { MysqlKeyTable, name } from "./key-table.ts";
import type { ResolvedMysqlOptions } from "./options.ts";

/** The idempotency store on MySQL and MariaDB. `list` pages in the order of the keys' digests, and rejects with a TypeError on a damaged cursor. */
export class MysqlIdempotencyStore extends TableStore<"async"> {
  constructor(engine: Engine<unknown>, options: ResolvedMysqlOptions<unknown>) {
    const { retentionMs } = options;
    super(new MysqlKeyTable(engine, options), { mode: "async", retentionMs, gate: new StoreGate(name) });
  }
}
