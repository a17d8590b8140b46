import { StoreGate, TableStore } from "@countersign/idempotency/store";
import { SqlKeyTable } from "../keys/key-table.ts";
import { NonceTable } from "../keys/nonce-table.ts";
import type { Stores } from "../server-stores.ts";
import { Engine } from "./engine.ts";
import { type MysqlStoresOptions, resolveOptions } from "./options.ts";
import { MysqlTransactions } from "./transaction-store.ts";
import { mysqlWorkStore } from "./work-store.ts";

/**
 * Creates the stores on tables that `migrate()` has made. Sends nothing before the first step or ready(). Throws an OptionError on a
 * wrong option.
 */
export function createMysqlStores<Tx>(options: MysqlStoresOptions<Tx>): Stores<Tx> {
  const resolved = resolveOptions(options);
  const engine = new Engine(resolved);
  const keys = new SqlKeyTable(engine);
  const { retentionMs } = resolved;
  const gate = new StoreGate(keys.name);
  const idempotency = new TableStore(keys, { mode: "async", retentionMs, gate });
  const nonces = new NonceTable(engine);
  const transactions = new MysqlTransactions(engine, resolved);
  const work = mysqlWorkStore(engine, resolved);
  return {
    idempotency,
    nonces,
    transactions,
    work,
    async ready() {
      await engine.ready();
    },
    close() {
      void idempotency.close();
      nonces.close();
      transactions.close();
      work.close();
    },
  };
}
