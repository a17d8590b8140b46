import type { Database, ConnectionPool, SqlValue, StatementGate } from "@countersign/idempotency";
import type { Within } from "@countersign/idempotency/store";
import {
  assertDriverConnection,
  changeOn,
  dialectOf,
  onLent,
  sendOn,
  type Dialect,
  type DriverConnection,
} from "./driver-connection.ts";
import { gatedConnection, refusedEnd } from "./gated-connection.ts";
import { poolOfSize } from "./pool-size.ts";
import { GatedTransactions } from "./transaction.ts";

export interface SequelizeTransaction {
  commit(): Promise<void>;
  rollback(): Promise<void>;
}

export interface SequelizeInstance<Tx extends SequelizeTransaction> {
  readonly connectionManager: {
    getConnection(options: { type: "write" }): Promise<object>;
    releaseConnection(connection: object): void;
  };
  getDialect(): string;
  transaction: {
    (work: (tx: Tx) => Promise<void>): Promise<unknown>;
    (): Promise<Tx>;
  };
}

const dialects = new Map<unknown, Dialect>([
  ["postgres", "postgresql"],
  ["mysql", "mysql"],
]);

/** An instance of Sequelize 6; handlers get its `Transaction` and pass it as `{ transaction: tx }`. The instance stays the app's to close. */
export function fromSequelize<Tx extends SequelizeTransaction>(
  sequelize: SequelizeInstance<Tx>,
): Database<Tx> {
  const dialect = dialectOf("fromSequelize", sequelize.getDialect(), dialects);
  const { connectionManager } = sequelize;
  const pool = {
    acquireConnection: () => connectionManager.getConnection({ type: "write" }),
    releaseConnection: (connection: object) => connectionManager.releaseConnection(connection),
  };
  const transactions = new GatedTransactions<Tx>("Sequelize", dialect);
  return {
    dialect,
    library: "Sequelize",
    tellsOpen: dialect === "mysql",
    tellsUnconfirmed: dialect === "postgresql",
    pool: () => sequelizePool(connectionManager),
    run: (work) =>
      transactions.run(
        (run: (tx: Tx) => Promise<void>) => untilGivenBack(sequelize, run),
        (tx, gate) => {
          passThrough(tx, gate);
          return tx;
        },
        work,
      ),
    gateOf: (tx) => transactions.gateOf(tx),
    query: async (tx, text, values) => sendOn(ownOf(tx), dialect, { text, values }),
    alone: (text, values) =>
      onLent("fromSequelize", pool, (connection) => sendOn(connection, dialect, { text, values })),
    script: async (tx, text) => sendOn(ownOf(tx), dialect, { text }),
    ...(dialect === "mysql" && {
      async change(text: string, values: readonly SqlValue[], within?: Within<Tx>) {
        if (within !== undefined) return changeOn(ownOf(within.tx), { text, values }, true);
        return onLent("fromSequelize", pool, (connection) => changeOn(connection, { text, values }, false));
      },
    }),
  };
}

/** With replication it has one for reads, and this one. */
function sequelizePool(connectionManager: object): ConnectionPool | undefined {
  const pool: unknown = Reflect.get(connectionManager, "pool");
  const writing: unknown = Reflect.get(Object(pool), "write") ?? pool;
  return poolOfSize(writing, Reflect.get(Object(writing), "maxSize"));
}

/** The connections of transactions, for the store, whose statements pass no gate. */
const own = new WeakMap<SequelizeTransaction, DriverConnection>();

/** `sequelize.query` would change `$` and `:name` inside of texts, and reshape the rows of RETURNING. */
function ownOf(tx: SequelizeTransaction): DriverConnection {
  // Until the pool has it again: Sequelize counts a transaction as finished when a query of the handler has met a deadlock.
  const ours = own.get(tx);
  if (ours !== undefined) return ours;
  // A nested transaction has none: its statements pass the gate, and are the handler's.
  const isOpen = typeof tx.commit === "function" && Reflect.get(tx, "finished") === undefined;
  const connection: unknown = isOpen ? Reflect.get(tx, "connection") : undefined;
  assertDriverConnection("fromSequelize", connection);
  return connection;
}

/**
 * Makes the transaction send on a connection that passes the gate. Its `commit` and `rollback` throw for the handler: they would give the
 * connection back to the pool, on MariaDB with autocommit off, where the app's next writes would never commit.
 */
function passThrough(tx: SequelizeTransaction, gate: StatementGate): void {
  const connection: unknown = Reflect.get(tx, "connection");
  assertDriverConnection("fromSequelize", connection);
  own.set(tx, connection);
  const gated = gatedConnection("fromSequelize", connection, gate, "events");
  Reflect.set(tx, "connection", gated);
  for (const name of ["cleanup", "forceCleanup"]) {
    const give: unknown = Reflect.get(tx, name);
    Reflect.set(tx, name, (): unknown => {
      // The pool knows the connection itself alone. A late statement finds the gate again.
      Reflect.set(tx, "connection", connection);
      own.delete(tx);
      try {
        return Reflect.apply(Object(give), tx, []);
      } finally {
        Reflect.set(tx, "connection", gated);
      }
    });
  }
  for (const name of ["commit", "rollback"] as const) {
    const end = tx[name];
    Reflect.set(tx, name, async (): Promise<void> => {
      if (gate.isOpen) refusedEnd("fromSequelize", name)();
      await Reflect.apply(end, tx, []);
    });
  }
}

/**
 * Runs the work in a transaction. On MariaDB Sequelize itself answers a deadlock of the handler's query with a rollback that ends nothing
 * here, takes the transaction for finished, and would keep its connection for ever.
 */
async function untilGivenBack<Tx extends SequelizeTransaction>(
  sequelize: SequelizeInstance<Tx>,
  work: (tx: Tx) => Promise<void>,
): Promise<unknown> {
  let opened: Tx | undefined;
  try {
    return await sequelize.transaction((tx: Tx) => {
      opened = tx;
      return work(tx);
    });
  } catch (error) {
    const connection = opened && own.get(opened);
    if (opened !== undefined && connection !== undefined) await giveBack(opened, connection);
    throw error;
  }
}

/** The store has sent ROLLBACK; once more, because a connection must not go back with a transaction open on it. */
async function giveBack(tx: SequelizeTransaction, connection: DriverConnection): Promise<void> {
  let how = "cleanup";
  try {
    await sendOn(connection, "mysql", { text: "ROLLBACK", values: [] });
  } catch {
    how = "forceCleanup";
  }
  await Reflect.apply(Object(Reflect.get(tx, how)), tx, []);
}
