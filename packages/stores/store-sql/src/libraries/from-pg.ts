import type { Database } from "@countersign/idempotency";
import { pooledClients, type ClientPool } from "@countersign/idempotency/store";
import { PgTransaction, type PgClient } from "./pg-transaction.ts";
import { driverPool } from "./pool-size.ts";
import { assertCanQuery, rowsOf } from "./rows.ts";

export type { PgClient } from "./pg-transaction.ts";

export interface PgPool<Client extends PgClient> extends ClientPool<Client> {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
}

const library = "pg";

/** A `Pool` of `pg`; handlers get its client. The pool stays the app's to end. */
export function fromPg<Client extends PgClient>(pool: PgPool<Client>): Database<Client> {
  assertCanQuery("fromPg", pool, "connect", "a Pool of pg");
  // Its connect() gives no client, so that nothing would ever begin.
  if ("connectionParameters" in pool) throw new TypeError("fromPg: needs a Pool of pg, not a Client");
  const lent = new WeakMap<Client, PgTransaction<Client>>();
  const transactionOf = (client: Client): PgTransaction<Client> => {
    const transaction = lent.get(client);
    if (transaction !== undefined) return transaction;
    throw new TypeError("fromPg: needs the client that the handler was given");
  };
  return {
    dialect: "postgresql",
    library,
    tellsRollback: true,
    tellsUnconfirmed: true,
    pool: () => driverPool(pool),
    async run(work) {
      const transaction = new PgTransaction(await pooledClients.take(pool));
      lent.set(transaction.client, transaction);
      return transaction.run(work);
    },
    gateOf: (client) => lent.get(client)?.gate,
    query: async (client, text, values) => rowsOf(library, await transactionOf(client).query(text, values)),
    alone: async (text, values) => rowsOf(library, await pooledClients.query(pool, text, values)),
    async script(client, text) {
      const results = await transactionOf(client).script(text);
      const all: readonly unknown[] = Array.isArray(results) ? results : [results];
      return all.flatMap((result) => rowsOf(library, result));
    },
  };
}
