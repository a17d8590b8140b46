import { withDeadline } from "@countersign/core";
import {
  createPool,
  type ExecuteValues,
  type Pool,
  type PoolConnection,
  type ResultSetHeader,
  type RowDataPacket,
} from "mysql2/promise";

/** The parameters of a statement, by the names behind its colons. */
export type Values = Readonly<Record<string, ExecuteValues>>;

/** What runs statements: a connection, the caller's included. */
export interface Executor {
  execute(
    options: { readonly sql: string; readonly namedPlaceholders: boolean },
    values: Record<string, ExecuteValues>,
  ): Promise<readonly [unknown, unknown]>;
}

const callTimeoutMs = 3_000;
const lockWaitSeconds = 1;
const maxAttempts = 20;

// The server has rolled the transaction back: it stood in a circle of waiting ones, or under innodb_snapshot_isolation a row has
// changed since its snapshot. Nothing of it happened, and most often one repetition is enough.
const repeatable: ReadonlySet<unknown> = new Set([1213, 1020]);

// Bit 0 of the status that comes with each answer: a transaction is open on the connection.
const inTransactionFlag = 1;

/** MariaDB as both stores use it: a pool of their own, since they need sessions of their own kind. */
export class Engine {
  readonly #pool: Pool;
  readonly #primaryKeys: Readonly<Record<string, string>>;
  readonly #prepared = new WeakSet();

  /** `primaryKeys` has the column of the primary key that each table must have, by the table's quoted name. */
  constructor(uri: string, primaryKeys: Readonly<Record<string, string>>) {
    this.#primaryKeys = primaryKeys;
    this.#pool = createPool({ uri, connectTimeout: callTimeoutMs, connectionLimit: 10 });
  }

  /** Runs a statement that changes rows, in a transaction of its own. Returns how many it has found. */
  async change(sql: string, values: Values): Promise<number> {
    return this.#repeat(async (connection) => (await change(connection, sql, values)).affectedRows);
  }

  /** Runs a statement that gives rows, in a transaction of its own. */
  async rows(sql: string, values: Values): Promise<readonly RowDataPacket[]> {
    return this.#repeat((connection) => rows(connection, sql, values));
  }

  /** Runs `work` between BEGIN and COMMIT, again from its beginning when the server asks for that. */
  async transaction<T>(work: (connection: Executor) => Promise<T>): Promise<T> {
    return this.#repeat(async (connection) => {
      await connection.beginTransaction();
      const result = await work(connection);
      await connection.commit();
      return result;
    });
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }

  async #repeat<T>(work: (connection: PoolConnection) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
        return await this.#onConnection(work);
      } catch (error) {
        if (!repeatable.has(errnoOf(error)) || attempt >= maxAttempts) throw error;
      }
    }
  }

  /** Throws when the whole takes too long: waiting for a connection, and for an answer of a server that is there but silent. */
  async #onConnection<T>(work: (connection: PoolConnection) => Promise<T>): Promise<T> {
    const deadline: { isLate: boolean; connection?: PoolConnection } = { isLate: false };
    const run = async (): Promise<T> => {
      const connection = await this.#pool.getConnection();
      if (deadline.isLate) {
        connection.release();
        throw new Error("the call has ended");
      }
      deadline.connection = connection;
      let result: T;
      try {
        await this.#prepare(connection);
        result = await work(connection);
      } catch (error) {
        await giveBack(connection);
        throw error;
      }
      connection.release();
      return result;
    };
    return withDeadline(run(), callTimeoutMs, () => {
      deadline.isLate = true;
      deadline.connection?.destroy();
      return new Error(`MariaDB did not answer within ${callTimeoutMs} ms`);
    });
  }

  async #prepare(connection: PoolConnection): Promise<void> {
    if (this.#prepared.has(connection.connection)) return;
    const [found] = await connection.query<RowDataPacket[]>(
      "SELECT @@innodb_flush_log_at_trx_commit AS flushed",
    );
    // 0 and 2 write the log once a second: a claim that a crash undoes lets a second attempt in beside the first.
    if (![1, 3].includes(Number(found[0]?.["flushed"]))) {
      throw new Error(
        "the stores need innodb_flush_log_at_trx_commit = 1: else a crash forgets what was answered",
      );
    }
    await this.#assertKeys(connection);
    // Without gap locks, and each statement sees what was committed before it, also behind a lock that it waited for.
    await connection.query("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    await connection.query(
      `SET SESSION autocommit = 1, innodb_lock_wait_timeout = ${lockWaitSeconds}, sql_mode = 'TRADITIONAL'`,
    );
    this.#prepared.add(connection.connection);
  }

  /** A table that was copied or restored without its primary key gives a row, and so the key, to each of two claims. */
  async #assertKeys(connection: PoolConnection): Promise<void> {
    for (const [table, column] of Object.entries(this.#primaryKeys)) {
      // oxlint-disable-next-line no-await-in-loop -- one connection
      const [parts] = await connection.query<RowDataPacket[]>(
        `SHOW KEYS FROM ${table} WHERE Key_name = 'PRIMARY'`,
      );
      if (parts.length === 1 && parts[0]?.["Column_name"] === column) continue;
      const remedy = `ALTER TABLE ${table} ADD PRIMARY KEY (${column})`;
      throw new Error(
        `the table ${table} has lost its primary key, and would give a key to two; run: ${remedy}`,
      );
    }
  }
}

/** Runs a statement that changes rows. */
export async function change(
  connection: Executor,
  sql: string,
  values: Values,
): Promise<{ affectedRows: number; isInTransaction: boolean }> {
  const [result] = await connection.execute({ sql, namedPlaceholders: true }, { ...values });
  if (!isHeader(result)) throw new Error("mysql2 told nothing of what a statement has changed");
  const { affectedRows, serverStatus } = result;
  return { affectedRows, isInTransaction: (serverStatus & inTransactionFlag) !== 0 };
}

/** Runs a statement that gives rows. */
export async function rows(
  connection: Executor,
  sql: string,
  values: Values,
): Promise<readonly RowDataPacket[]> {
  const [result] = await connection.execute({ sql, namedPlaceholders: true }, { ...values });
  if (!isRows(result)) throw new Error("mysql2 gave no rows where there are always some or none");
  return result;
}

// The server rolls back by itself when the connection ends, so one that does not answer is not waited for.
async function giveBack(connection: PoolConnection): Promise<void> {
  try {
    await connection.rollback();
    connection.release();
  } catch {
    connection.destroy();
  }
}

function errnoOf(error: unknown): unknown {
  return typeof error === "object" && error !== null && "errno" in error ? error.errno : undefined;
}

function isHeader(result: unknown): result is ResultSetHeader {
  return (
    typeof result === "object" && result !== null && "affectedRows" in result && "serverStatus" in result
  );
}

function isRows(result: unknown): result is readonly RowDataPacket[] {
  return Array.isArray(result);
}
