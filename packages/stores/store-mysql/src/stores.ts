import type { TransactionStore } from "@countersign/idempotency";
import type { WorkStores } from "@countersign/idempotency/work";
import { Engine } from "./engine.ts";
import { MysqlIdempotencyStore } from "./idempotency-store.ts";
import { NonceTable, type MysqlNonceStore } from "./nonce-store.ts";
import { type MysqlStoresOptions, resolveOptions } from "./options.ts";
import { MysqlTransactions } from "./transaction-store.ts";
import { type MysqlWorkStore, mysqlWorkStore } from "./work-store.ts";

/** `TransactionStores`, as `payoutEndpoint({ stores, pay })` takes them. */
export interface MysqlStores<Tx> extends WorkStores<Tx, "async"> {
  readonly idempotency: MysqlIdempotencyStore<Tx>;
  readonly nonces: MysqlNonceStore;
  readonly transactions: TransactionStore<Tx, "async">;
  readonly work: MysqlWorkStore<Tx>;
  /** Resolves when server and tables are as the stores need them; rejects with the remedy. Without it the first step checks, and throws. */
  ready(this: void): Promise<void>;
  /** Closes the stores; the database stays open. */
  close(this: void): void;
}

/**
 * Creates the stores on tables that `migrateMysql` has made. Sends nothing before the first step or ready(). Throws an OptionError on a
 * wrong option.
 */
export function createMysqlStores<Tx>(options: MysqlStoresOptions<Tx>): MysqlStores<Tx> {
  const resolved = resolveOptions(options);
  const engine = new Engine(resolved);
  const idempotency = new MysqlIdempotencyStore(engine, resolved);
  const nonces = new NonceTable(engine, resolved);
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
