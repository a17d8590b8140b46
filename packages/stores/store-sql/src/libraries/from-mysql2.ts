import type { Database, SqlValue } from "@countersign/idempotency";
import type { Row } from "@countersign/idempotency/store";
import { type QueryResult, Mysql2Transaction, type Mysql2Connection } from "./mysql2-transaction.ts";
import { driverPool } from "./pool-size.ts";
import { assertCanQuery, changedAlone, changedRows, rowList } from "./rows.ts";

export type { Mysql2Connection } from "./mysql2-transaction.ts";

export interface Mysql2Pool<Connection extends Mysql2Connection> {
  getConnection(): Promise<Connection>;
  query(text: string, values?: SqlValue[]): Promise<QueryResult>;
}

const library = "mysql2";
const caller = "fromMysql2";
const handlers = "the connection that the handler was given";

/**
 * A pool of `mysql2/promise`, or `pool.promise()`, on MySQL or MariaDB; handlers get its connection. The pool stays the app's to end.
 */
export function fromMysql2<Connection extends Mysql2Connection>(
  pool: Mysql2Pool<Connection>,
): Database<Connection> {
  assertPool(pool);
  const lent = new WeakMap<Connection, Mysql2Transaction<Connection>>();
  const send = async (connection: Connection, text: string, values: readonly SqlValue[]) => {
    // Also one of the app's own transactions: keepIn() and add() ask the server whether one is open.
    assertCanQuery(caller, connection, "release", handlers);
    const transaction = lent.get(connection);
    if (transaction !== undefined) return transaction.query(text, [...values]);
    return (await connection.query(text, [...values]))[0];
  };
  const sendAlone = async (text: string, values: readonly SqlValue[]) =>
    (await pool.query(text, [...values]))[0];
  return {
    dialect: "mysql",
    library,
    tellsOpen: true,
    pool: () => driverPool(pool),
    async run(work) {
      const transaction = new Mysql2Transaction(await pool.getConnection());
      lent.set(transaction.connection, transaction);
      return transaction.run(work);
    },
    gateOf: (connection) => lent.get(connection)?.gate,
    query: async (connection, text, values) => rowsOf(await send(connection, text, values)),
    alone: async (text, values) => rowsOf(await sendAlone(text, values)),
    async change(text, values, within) {
      if (within === undefined) return changedAlone(library, await sendAlone(text, values));
      const header = await send(within.tx, text, values);
      return changedRows(library, Reflect.get(Object(header), "affectedRows"));
    },
    async script(connection, text) {
      const transaction = lent.get(connection);
      if (transaction !== undefined) return transaction.script(text);
      throw new TypeError(`${caller}: needs ${handlers}`);
    },
  };
}

/** A pool with callbacks answers nothing that could be awaited. */
function assertPool(pool: unknown): void {
  const expected = "a Pool of mysql2/promise, or pool.promise()";
  assertCanQuery(caller, pool, "getConnection", expected);
  if (typeof Object(pool).promise === "function") throw new TypeError(`${caller}: needs ${expected}`);
}

/** A statement that gives no rows is answered by an object. */
function rowsOf(result: unknown): readonly Row[] {
  const isHeader = typeof result === "object" && result !== null && "affectedRows" in result;
  return isHeader ? [] : rowList(library, result);
}
