import type { Database, SqlValue, StatementGate } from "@countersign/idempotency";
import { watchCommits, type Within } from "@countersign/idempotency/store";
import {
  assertDriverConnection,
  changeOn,
  dialectOf,
  driverValues,
  sendOn,
  type Dialect,
  type DriverConnection,
} from "./driver-connection.ts";
import { gatedConnection } from "./gated-connection.ts";
import { driverPool } from "./pool-size.ts";
import { changedAlone, rowList } from "./rows.ts";
import { GatedTransactions } from "./transaction.ts";

interface TypeOrmResult {
  readonly records: unknown;
  /** As the driver has answered. */
  readonly raw: unknown;
}

interface TypeOrmRunner {
  connect(): Promise<unknown>;
  query(text: string, values: unknown[], isStructured: true): Promise<TypeOrmResult>;
  release(): Promise<void>;
}

export interface TypeOrmManager {
  readonly queryRunner?: TypeOrmRunner | undefined;
}

export interface TypeOrmDataSource<Manager extends TypeOrmManager> {
  readonly options: { readonly type: string };
  readonly manager: Manager;
  createQueryRunner(): TypeOrmRunner;
  transaction(work: (manager: Manager) => Promise<void>): Promise<unknown>;
}

const library = "TypeORM";
const dialects = new Map<unknown, Dialect>([
  ["postgres", "postgresql"],
  ["mysql", "mysql"],
  ["mariadb", "mysql"],
]);

/** A `DataSource` of TypeORM; handlers get its `EntityManager`. The data source stays the app's to destroy. */
export function fromTypeOrm<Manager extends TypeOrmManager>(
  dataSource: TypeOrmDataSource<Manager>,
): Database<Manager> {
  const dialect = dialectOf("fromTypeOrm", dataSource.options.type, dialects);
  const transactions = new GatedTransactions<Manager>(library, dialect);
  // The connections of open transactions, for the store, whose statements pass no gate. The store has to find out what a handler has ended
  // itself: TypeORM goes on writing, and each write commits by itself.
  const own = new WeakMap<TypeOrmManager, DriverConnection>();
  const ownOf = (manager: Manager): DriverConnection => {
    const connection = own.get(manager);
    if (connection !== undefined) return connection;
    throw new TypeError(
      "fromTypeOrm: needs the EntityManager that the handler was given, in its open transaction",
    );
  };
  const sendAlone = async (text: string, values: readonly SqlValue[]): Promise<TypeOrmResult> => {
    const runner = dataSource.createQueryRunner();
    try {
      // Only the structured result has the rows of UPDATE ... RETURNING alone.
      const query = () => runner.query(text, driverValues(dialect, values), true);
      return await (dialect === "mysql" ? query() : watchCommits(await runner.connect(), query));
    } finally {
      await runner.release();
    }
  };
  return {
    dialect,
    library,
    tellsOpen: dialect === "mysql",
    tellsUnconfirmed: dialect === "postgresql",
    pool: () => driverPool(Reflect.get(Object(Reflect.get(dataSource, "driver")), "master")),
    run: (work) =>
      transactions.run(
        (run) => dataSource.transaction(run),
        async (manager: Manager, gate) => {
          own.set(manager, await passThrough(manager, gate));
          return manager;
        },
        async (manager) => {
          try {
            return await work(manager);
          } finally {
            own.delete(manager);
          }
        },
      ),
    gateOf: (manager) => transactions.gateOf(manager),
    query: async (manager, text, values) => sendOn(ownOf(manager), dialect, { text, values }),
    alone: async (text, values) => rowList(library, (await sendAlone(text, values)).records),
    script: async (manager, text) => sendOn(ownOf(manager), dialect, { text }),
    ...(dialect === "mysql" && {
      async change(text: string, values: readonly SqlValue[], within?: Within<Manager>) {
        if (within !== undefined) return changeOn(ownOf(within.tx), { text, values }, true);
        return changedAlone(library, (await sendAlone(text, values)).raw);
      },
    }),
  };
}

/** Makes the query runner of the transaction send on a connection that passes the gate. Returns the connection itself. */
async function passThrough({ queryRunner }: TypeOrmManager, gate: StatementGate): Promise<DriverConnection> {
  const connection = await queryRunner?.connect();
  assertDriverConnection("fromTypeOrm", connection);
  // pg answers by promises and callbacks, mysql2 by callbacks and events, or by what its promise() returns.
  const style = "promise" in connection ? "events" : "promise";
  Reflect.set(
    Object(queryRunner),
    "databaseConnection",
    gatedConnection("fromTypeOrm", connection, gate, style),
  );
  return connection;
}
