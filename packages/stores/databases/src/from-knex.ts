import type { Database } from "@countersign/idempotency";
import { dialectOf, sendOnLent, type Dialect, type Lender, type Statement } from "./driver-connection.ts";
import { inTransaction, withoutEnd } from "./transaction.ts";

interface KnexClient extends Lender {
  readonly dialect: string;
}

export interface KnexTransaction {
  readonly client: KnexClient;
  readonly isTransaction?: boolean;
  readonly executionPromise?: Promise<unknown>;
  isCompleted(): boolean;
}

export interface KnexInstance<Tx extends KnexTransaction> {
  readonly client: KnexClient;
  readonly isTransaction?: boolean;
  transaction(work: (tx: Tx) => Promise<void>): Promise<unknown>;
}

const library = "Knex";
const caller = "fromKnex";
const dialects = new Map<unknown, Dialect>([
  ["postgresql", "postgresql"],
  ["mysql", "mysql"],
]);

/**
 * A `Knex` on pg, mysql or mysql2; handlers get its `Knex.Transaction`. Throws a TypeError on another dialect. Knex does not tell that
 * PostgreSQL answered COMMIT with ROLLBACK: only a last statement finds that out.
 */
export function fromKnex<Tx extends KnexTransaction>(knex: KnexInstance<Tx>): Database<Tx> {
  if (knex.isTransaction) throw new TypeError(`${caller}: needs a Knex, got its Transaction`);
  const dialect = dialectOf(caller, knex.client.dialect, dialects);
  // On the driver's connection: `raw` reads `?` and `:name` in the text, and hooks of the app rename columns.
  const send = (client: KnexClient, statement: Statement) => sendOnLent(caller, client, dialect, statement);
  return {
    dialect,
    library,
    run: (work) =>
      inTransaction(
        (run) => knex.transaction(run),
        async (tx: Tx) => {
          // Knex begins the work even when its BEGIN has failed, and keeps the error here.
          if (tx.isCompleted()) await tx.executionPromise;
          return withoutEnd(caller, tx, work);
        },
      ),
    query: async (tx, text, values) => send(clientOf(tx), { text, values }),
    alone: (text, values) => send(knex.client, { text, values }),
    script: async (tx, text) => send(clientOf(tx), { text }),
  };
}

function clientOf(tx: KnexTransaction): KnexClient {
  // A caller without types can give the Knex itself. A completed transaction's connection may be another request's.
  const given: unknown = Reflect.get(Object(tx), "isTransaction");
  if (given === true && !tx.isCompleted()) return tx.client;
  throw new TypeError(`${caller}: needs the Transaction that the handler was given, before its end`);
}
