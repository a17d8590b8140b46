import type { Database } from "@countersign/idempotency";
import {
  assertDriverConnection,
  dialectOf,
  driverValues,
  sendOn,
  type Dialect,
} from "./driver-connection.ts";
import { rowList } from "./rows.ts";
import { inTransaction } from "./transaction.ts";

interface TypeOrmRunner {
  readonly isTransactionActive: boolean;
  connect(): Promise<unknown>;
  query(text: string, values: unknown[], isStructured: true): Promise<{ readonly records: unknown }>;
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
  // Of open transactions. The store has to find out what a handler has ended itself: TypeORM goes on writing, and each write commits alone.
  const lent = new WeakSet<TypeOrmManager>();
  const runnerOf = (manager: TypeOrmManager): TypeOrmRunner => {
    const { queryRunner } = manager;
    if (queryRunner?.isTransactionActive || (queryRunner && lent.has(manager))) return queryRunner;
    throw new TypeError(
      "fromTypeOrm: needs the EntityManager that the handler was given, in its open transaction",
    );
  };
  const send: Database<TypeOrmRunner>["query"] = async (runner, text, values) => {
    // Only the structured result has the rows of UPDATE ... RETURNING alone.
    const { records } = await runner.query(text, driverValues(dialect, values), true);
    return rowList(library, records);
  };
  return {
    dialect,
    library,
    run: (work) =>
      inTransaction(
        (run) => dataSource.transaction(run),
        async (manager: Manager) => {
          lent.add(manager);
          try {
            return await work(manager);
          } finally {
            lent.delete(manager);
          }
        },
      ),
    query: async (manager, text, values) => send(runnerOf(manager), text, values),
    async alone(text, values) {
      const runner = dataSource.createQueryRunner();
      try {
        return await send(runner, text, values);
      } finally {
        await runner.release();
      }
    },
    // TypeORM drops the rows of several statements, its driver does not.
    async script(manager, text) {
      const connection = await runnerOf(manager).connect();
      assertDriverConnection("fromTypeOrm", connection);
      return sendOn(connection, dialect, { text });
    },
  };
}
