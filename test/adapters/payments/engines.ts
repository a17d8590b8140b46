import { EventEmitter, once } from "node:events";
import { fromMysql2 } from "@countersign/store-sql/mysql2";
import { fromPg } from "@countersign/store-sql/pg";
import type { Database, TransactionAnswerStore, TransactionStores } from "@countersign/idempotency";
import { createAnswers, createStores } from "@countersign/store-sql";
import { afterAll } from "@jest/globals";
import { type PoolConnection, type RowDataPacket, createConnection } from "mysql2/promise";
import * as mysql from "../../../packages/stores/store-sql/test/mysql/connections.ts";
import { connectPool, untilBlocked } from "../../../packages/stores/store-sql/test/postgres/connections.ts";
import { newPayouts, pastGate } from "../../../packages/stores/store-sql/test/postgres/payouts.ts";
import {
  type Connection,
  connect,
  temporaryFile,
} from "../../../packages/stores/store-sql/test/sqlite/connections.ts";
import { afterTest } from "../../support/runs/after-test.ts";
import { isolatedName, mysqlUrl, postgresUrl } from "../../support/servers/engines.ts";

/** The transaction of any engine: rows use it by {@link Tables} alone. */
export type Tx = never;

export interface ProcessOptions {
  readonly now?: (() => number) | undefined;
  /** Of the pool. Default 8. */
  readonly connections?: number;
  /** Of PostgreSQL's transactions. */
  readonly isolation?: string;
  /** Stands before the library of a server. */
  readonly wrap?: (database: Database<Tx>) => Database<Tx>;
  /** What its transactions are in place of some: each statement commits by itself, or none may write. */
  readonly transactions?: "autocommit" | "read-only";
}

/** The tables of one test: payments beside keys and nonces. */
export interface Tables {
  /** Of the names of our own ones. */
  readonly prefix: string;
  /** Stores of a process of its own. */
  process(options?: ProcessOptions): TransactionStores<Tx>;
  /** A store of answers that commit in the transactions of these stores. */
  answersOf(stores: TransactionStores<Tx>): Promise<TransactionAnswerStore<Tx>>;
  /** Sends a statement in the transaction: a promise of its end, or its end. */
  sql(tx: Tx, text: string): unknown;
  /** The same, past what keeps a handler's `tx` from texts that end the transaction. */
  past(tx: Tx, text: string, stores: TransactionStores<Tx>): unknown;
  /** Writes what a constraint refuses at COMMIT, where there are such constraints. */
  readonly late: string;
  /** A statement that undoes the handler's writes, and whose error a handler may swallow. */
  readonly breaking: string;
  /** Fails as the engine's conflicts between transactions do, each time in another way. */
  conflict(tx: Tx, call: number): unknown;
  /** Loses a deadlock, which ends the transaction, and swallows its error; where deadlocks do that. */
  loseDeadlock(tx: Tx): Promise<void>;
  /** Ends the line of its own transaction. */
  readonly suicide: string;
  /** Ends another one's, which hears of it at its next statement. */
  kill(tx: Tx): Promise<unknown>;
  /** The ids of payments that have committed. */
  paid(): Promise<readonly string[]>;
  /** Sends a statement outside of any transaction, on a line of its own. */
  alone(text: string): Promise<unknown>;
  /** Resolves when some transaction waits for a lock, on SQLite to begin. */
  untilBlocked(): Promise<void>;
}

export type EngineName = "mariadb" | "postgresql" | "sqlite";

export interface Engine {
  readonly name: EngineName;
  readonly isThere: boolean;
  open(): Promise<Tables>;
}

const same = (database: Database<Tx>): Database<Tx> => database;
const paymentsTable = "CREATE TABLE payments (id TEXT NOT NULL)";
const laterTable = (reference: string): string =>
  `CREATE TABLE later (id TEXT PRIMARY KEY, of_id TEXT ${reference} DEFERRABLE INITIALLY DEFERRED)`;
const late = "INSERT INTO later VALUES ('a', 'nothing')";
function closed<Made extends { close(): unknown }>(made: Made): Made {
  afterTest(() => made.close());
  return made;
}

const nowhere = (): Promise<never> => Promise.reject(new Error("this engine knows no such thing"));
const raise = (state: string): string => `DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '${state}'; END $$`;
const signal = (errno: number): string => `SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = ${errno}`;

type Pretended = NonNullable<ProcessOptions["transactions"]>;

/** The library with a statement at the beginning of its transactions after which they are none, or may not write. */
function pretending(
  database: Database<Tx>,
  transactions: Pretended | undefined,
  by: Readonly<Record<Pretended, string>>,
): Database<Tx> {
  if (transactions === undefined) return database;
  return {
    ...database,
    run: (work) =>
      database.run(async (tx) => {
        await database.query(tx, by[transactions], []);
        return work(tx);
      }),
  };
}

const postgresql: Engine = {
  name: "postgresql",
  isThere: postgresUrl !== undefined,
  async open() {
    const { another, pool, schema } = await newPayouts();
    const options = `-c search_path=${schema}`;
    const own = connectPool({ max: 4, options });
    await own.query(`${paymentsTable}; ${laterTable("REFERENCES later (id)")}`);
    return {
      prefix: "countersign",
      process({ now, connections: max = 8, isolation = "read\\ committed", wrap = same, transactions } = {}) {
        const settings = `${options} -c default_transaction_isolation=${isolation}`;
        const its = connectPool({ max, options: settings });
        const first = { autocommit: "COMMIT", "read-only": "SET TRANSACTION READ ONLY" };
        const database = wrap(pretending(fromPg(its) as never, transactions, first));
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- rows know no type of tx
        return another({ now, database }) as unknown as TransactionStores<Tx>;
      },
      async answersOf({ transactions: { database } }) {
        return closed(createAnswers({ database: database as Database<Tx>, schema, pruneIntervalMs: 0 }));
      },
      sql: (tx: { query(text: string): unknown }, text) => tx.query(text),
      past: pastGate,
      late,
      breaking: "SELECT 1 / 0",
      conflict: (tx: { query(text: string): unknown }, call) =>
        tx.query(raise(call % 2 === 0 ? "40001" : "40P01")),
      loseDeadlock: nowhere,
      suicide: "SELECT pg_terminate_backend(pg_backend_pid())",
      async kill(tx: { query(text: string): Promise<{ rows: { id: number }[] }> }) {
        const { rows } = await tx.query("SELECT pg_backend_pid() AS id");
        await own.query("SELECT pg_terminate_backend($1)", [rows[0]?.id]);
      },
      paid: async () => (await own.query<{ id: string }>("SELECT id FROM payments")).rows.map(({ id }) => id),
      alone: (text) => own.query(text),
      untilBlocked: () => untilBlocked(pool, schema),
    };
  },
};

const sqlite: Engine = {
  name: "sqlite",
  isThere: true,
  async open() {
    const file = temporaryFile();
    const own = connect(file);
    const beside = connect(file);
    const refused = new EventEmitter();
    own.exec(`${paymentsTable}; ${laterTable("REFERENCES later (id)")};
      CREATE TABLE once (id TEXT PRIMARY KEY ON CONFLICT ROLLBACK); INSERT INTO once VALUES ('a')`);
    return {
      prefix: "countersign",
      process({ now, transactions } = {}) {
        const database = connect(file);
        database.exec("PRAGMA foreign_keys = ON");
        const stores = createStores({ database, now, pruneIntervalMs: 0 });
        afterTest(() => stores.close());
        if (transactions === "read-only") database.exec("PRAGMA query_only = ON");
        const exec = database.exec.bind(database);
        database.exec = (text) => {
          if (text === "BEGIN IMMEDIATE" && transactions === "autocommit") return undefined;
          try {
            return exec(text);
          } catch (error) {
            if (text === "BEGIN IMMEDIATE") refused.emit("begin");
            throw error;
          }
        };
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- rows know no type of tx
        return stores as unknown as TransactionStores<Tx>;
      },
      answersOf: async ({ transactions: { database } }) =>
        closed(createAnswers({ database: database as never, pruneIntervalMs: 0 })),
      sql: (tx: { exec(text: string): unknown }, text) => void tx.exec(text),
      past: (_tx, text, { transactions }) => void (transactions.database as Connection).exec(text),
      late,
      breaking: "INSERT INTO once VALUES ('a')",
      // As a handler's that writes on another connection: its own transaction has the write lock.
      conflict: () => beside.exec("PRAGMA busy_timeout = 0; BEGIN IMMEDIATE"),
      loseDeadlock: nowhere,
      suicide: "",
      kill: nowhere,
      paid: async () =>
        own
          .prepare("SELECT id FROM payments")
          .all()
          .map((row) => String(Reflect.get(Object(row), "id"))),
      alone: async (text) => own.exec(text),
      untilBlocked: async () => void (await once(refused, "begin")),
    };
  },
};

let ofThisFile: string | undefined;

/** A database of MariaDB for the tests of this file: rows name tables without a prefix. */
async function ownDatabase(): Promise<string> {
  if (ofThisFile !== undefined) return ofThisFile;
  ofThisFile = isolatedName("adapters");
  await asked(`CREATE DATABASE ${ofThisFile}`);
  return ofThisFile;
}

afterAll(async () => {
  if (ofThisFile !== undefined) await asked(`DROP DATABASE ${ofThisFile}`);
});

async function asked(text: string): Promise<void> {
  const connection = await createConnection({ uri: mysqlUrl ?? "" });
  await connection.query(text);
  await connection.end();
}

const mariadb: Engine = {
  name: "mariadb",
  isThere: mysqlUrl !== undefined,
  async open() {
    const database = await ownDatabase();
    const own = mysql.connectPool({ database });
    const table = await mysql.createTables(own);
    await own.query(paymentsTable);
    afterTest(() => own.query("DROP TABLE IF EXISTS payments, meanwhile"));
    return {
      prefix: table,
      process({ now, connections = 8, wrap = same, transactions } = {}) {
        const its = fromMysql2(mysql.connectPool({ database, connectionLimit: connections }));
        const first = { autocommit: "COMMIT", "read-only": "START TRANSACTION READ ONLY" };
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- rows know no type of tx
        const library = wrap(pretending(its as never, transactions, first));
        const stores = createStores({ table, now, database: library, pruneIntervalMs: 0 });
        afterTest(() => stores.close());
        return stores;
      },
      answersOf: async ({ transactions: { database: its } }) =>
        closed(createAnswers({ database: its as Database<Tx>, table, pruneIntervalMs: 0 })),
      sql: (tx: { query(text: string): unknown }, text) => tx.query(text),
      past: (tx, text, { transactions }) => (transactions.database as Database<Tx>).query(tx, text, []),
      late: "",
      breaking: "",
      conflict: (tx: { query(text: string): unknown }, call) =>
        tx.query(signal(call % 2 === 0 ? 1213 : 1020)),
      async loseDeadlock(tx: PoolConnection) {
        const rival = `${table}_rival`;
        await own.query(`CREATE TABLE ${rival} (id INT PRIMARY KEY, value INT)`);
        afterTest(() => own.query(`DROP TABLE ${rival}`));
        await own.query(`INSERT INTO ${rival} SELECT seq, 0 FROM ${mysql.numbers}`);
        await mysql.loseDeadlock(tx, own, rival);
      },
      suicide: "KILL CONNECTION_ID()",
      kill: (tx: { threadId: number }) => own.query(`KILL ${tx.threadId}`),
      async paid() {
        const [rows] = await own.query<RowDataPacket[]>("SELECT id FROM payments");
        return rows.map((row) => String(row["id"]));
      },
      alone: (text) => own.query(text),
      untilBlocked: () => mysql.untilBlocked(own, table),
    };
  },
};

export const engines: readonly Engine[] = [postgresql, sqlite, mariadb].filter(({ isThere }) => isThere);

/** Goes on when an answer is there: at once, or after its promise. */
export function after(answer: unknown, next: () => unknown): unknown {
  return answer instanceof Promise ? afterPromise(answer, next) : next();
}

async function afterPromise(answer: Promise<unknown>, next: () => unknown): Promise<unknown> {
  await answer;
  return next();
}

/** Does the work; its error is nobody's. */
export function swallow(work: () => unknown): unknown {
  try {
    const answer = work();
    return answer instanceof Promise ? answer.catch(() => undefined) : answer;
  } catch {
    return undefined;
  }
}
