import { StoreGate, TableStore } from "@countersign/idempotency/store";
import type { Engine } from "./engine.ts";
import { name, PostgresKeyTable } from "./key-table.ts";
import type { ResolvedPostgresOptions } from "./options.ts";

/** The idempotency store on PostgreSQL. `list` pages in the order of the keys' bytes, and rejects with a TypeError on a damaged cursor. */
export class PostgresIdempotencyStore extends TableStore<"async"> {
  constructor(engine: Engine, options: ResolvedPostgresOptions) {
    const gate = new StoreGate(name);
    const { retentionMs } = options;
    super(new PostgresKeyTable(engine, options, gate), { mode: "async", retentionMs, gate });
  }
}
