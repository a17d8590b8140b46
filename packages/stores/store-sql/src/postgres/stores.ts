import type { Database } from "@countersign/idempotency";
import { StoreGate, TableStore } from "@countersign/idempotency/store";
import { SqlKeyTable } from "../keys/key-table.ts";
import { NonceTable } from "../keys/nonce-table.ts";
import type { PoolStores, Stores } from "../server-stores.ts";
import { Engine } from "./engine.ts";
import {
  type AnyPostgresOptions,
  type PostgresDatabaseOptions,
  type PostgresStoresOptions,
  resolveOptions,
} from "./options.ts";
import { PostgresTransactions } from "./transactions.ts";
import { postgresWorkStore } from "./work-store.ts";

/**
 * Creates the stores on tables that `countersign migrate` or `migrate()` has made; `transactions` and `work` with the option `database`.
 * Sends nothing before the first step or ready(). Throws an OptionError on a wrong option.
 */
export function createPostgresStores<Tx>(options: PostgresDatabaseOptions<Tx>): Stores<Tx>;
export function createPostgresStores(options: PostgresStoresOptions): PoolStores;
export function createPostgresStores<Tx>(options: AnyPostgresOptions<Tx>): PoolStores | Stores<Tx> {
  const resolved = resolveOptions(options);
  const engine = new Engine<Tx>(resolved, options.database);
  const { retentionMs } = resolved;
  const keys = new SqlKeyTable(engine);
  const gate = new StoreGate(keys.name);
  const idempotency = new TableStore(keys, { mode: "async", retentionMs, gate });
  const nonces = new NonceTable(engine);
  const inside = insideOf(engine, resolved, options.database);
  return {
    idempotency,
    nonces,
    ...inside,
    ready: () => engine.ready(),
    close() {
      void idempotency.close();
      nonces.close();
      inside?.transactions.close();
      inside?.work.close();
    },
  };
}

function insideOf<Tx>(
  engine: Engine<Tx>,
  options: ReturnType<typeof resolveOptions>,
  database: Database<Tx> | undefined,
) {
  if (database === undefined) return undefined;
  return {
    transactions: new PostgresTransactions(engine, options, database),
    work: postgresWorkStore(engine, options, database),
  };
}
