import type { Database, ConnectionPool, SqlValue, StatementGate } from "@countersign/idempotency";
import type { Within } from "@countersign/idempotency/store";
import {
  changeOn,
  dialectOf,
  onLent,
  sendOn,
  type Dialect,
  type Lender,
  type Statement,
} from "./driver-connection.ts";
import { gatedConnection } from "./gated-connection.ts";
import { poolOfSize } from "./pool-size.ts";
import { GatedTransactions, withoutEnd } from "./transaction.ts";

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
  const send = (client: KnexClient, statement: Statement) =>
    onLent(caller, storesOwn(client), (connection) => sendOn(connection, dialect, statement));
  const transactions = new GatedTransactions<Tx>(library, dialect);
  return {
    dialect,
    library,
    tellsOpen: dialect === "mysql",
    tellsUnconfirmed: dialect === "postgresql",
    pool: () => knexPool(knex.client),
    run: (work) =>
      transactions.run(
        (run) => knex.transaction(run),
        async (tx: Tx, gate) => {
          // Knex begins the work even when its BEGIN has failed, and keeps the error here.
          if (tx.isCompleted()) await tx.executionPromise;
          await passThrough(caller, tx.client, gate);
          return tx;
        },
        (tx) => withoutEnd(caller, tx, work),
      ),
    gateOf: (tx) => transactions.gateOf(tx),
    query: async (tx, text, values) => send(clientOf(tx), { text, values }),
    alone: (text, values) => send(knex.client, { text, values }),
    script: async (tx, text) => send(clientOf(tx), { text }),
    ...(dialect === "mysql" && {
      async change(text: string, values: readonly SqlValue[], within?: Within<Tx>) {
        const client = within === undefined ? knex.client : clientOf(within.tx);
        return onLent(caller, storesOwn(client), (connection) =>
          changeOn(connection, { text, values }, within !== undefined),
        );
      },
    }),
  };
}

/** The pool of a client of Knex. */
export function knexPool(client: object): ConnectionPool | undefined {
  const pool: unknown = Reflect.get(client, "pool");
  return poolOfSize(pool, Reflect.get(Object(pool), "max"));
}

const lenders = new WeakMap<Lender, Lender>();

/** Lends the connection of a transaction's client to the store, whose statements pass no gate. */
export function storesOwn(client: Lender): Lender {
  return lenders.get(client) ?? client;
}

/**
 * Makes the client of a transaction send on a connection that passes the gate; nested transactions take theirs from it. Knex compares the
 * connection that it sends on with the one that it has opened the transaction on.
 */
export async function passThrough(owner: string, client: Lender, gate: StatementGate): Promise<void> {
  const real = Object(await client.acquireConnection());
  const gated = gatedConnection(owner, real, gate, "events");
  lenders.set(client, { acquireConnection: async () => real, releaseConnection() {} });
  const [from, to] = [
    { query: gated, stream: gated, _query: real, _stream: real },
    { query: real, stream: real, _query: gated, _stream: gated },
  ] as const;
  for (const name of ["query", "stream", "_query", "_stream"] as const) {
    const method: unknown = Reflect.get(client, name);
    if (typeof method !== "function") continue;
    Reflect.set(client, name, (connection: unknown, ...values: unknown[]): unknown =>
      Reflect.apply(method, client, [connection === from[name] ? to[name] : connection, ...values]),
    );
  }
  Reflect.set(client, "acquireConnection", () => Promise.resolve(gated));
}

function clientOf(tx: KnexTransaction): KnexClient {
  // A caller without types can give the Knex itself. A completed transaction's connection may be another request's.
  const given: unknown = Reflect.get(Object(tx), "isTransaction");
  if (given === true && !tx.isCompleted()) return tx.client;
  throw new TypeError(`${caller}: needs the Transaction that the handler was given, before its end`);
}
