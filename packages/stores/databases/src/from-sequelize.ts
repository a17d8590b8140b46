import type { Database } from "@countersign/idempotency";
import { assertDriverConnection, dialectOf, sendOn, sendOnLent, type Dialect } from "./driver-connection.ts";
import { inTransaction, withoutEnd } from "./transaction.ts";

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
  return {
    dialect,
    library: "Sequelize",
    run: (work) =>
      inTransaction(
        (run: (tx: Tx) => Promise<void>) => sequelize.transaction(run),
        (tx) => withoutEnd("fromSequelize", tx, work),
      ),
    query: async (tx, text, values) => sendOn(connectionOf(tx), dialect, { text, values }),
    alone: (text, values) => sendOnLent("fromSequelize", pool, dialect, { text, values }),
    script: async (tx, text) => sendOn(connectionOf(tx), dialect, { text }),
  };
}

/** `sequelize.query` would change `$` and `:name` inside of texts, and reshape the rows of RETURNING. */
function connectionOf(tx: SequelizeTransaction) {
  const isOpen = typeof tx.commit === "function" && Reflect.get(tx, "finished") === undefined;
  const connection: unknown = isOpen ? Reflect.get(tx, "connection") : undefined;
  assertDriverConnection("fromSequelize", connection);
  return connection;
}
