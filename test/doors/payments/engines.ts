import { fromMysql2, fromPg } from "@countersign/databases";
import type { Database, TransactionAnswerStore, TransactionStores } from "@countersign/idempotency";
import { createMysqlAnswers, createMysqlStores } from "@countersign/store-mysql";
import { createPostgresAnswers, migratePostgresAnswers } from "@countersign/store-postgres";
import { createSqliteAnswers, createSqliteStores } from "@countersign/store-sqlite";
import type { RowDataPacket } from "mysql2/promise";
import * as mysql from "../../../packages/stores/store-mysql/test/connections.ts";
import { connectPool, untilBlocked } from "../../../packages/stores/store-postgres/test/connections.ts";
import { newPayouts } from "../../../packages/stores/store-postgres/test/payouts.ts";
import { connect, temporaryFile } from "../../../packages/stores/store-sqlite/test/connections.ts";
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
}

/** The tables of one test: payments beside keys and nonces. */
export interface Tables {
  /** Stores of a process of its own. */
  process(options?: ProcessOptions): TransactionStores<Tx>;
  /** A store of answers that commit in the transactions of these stores. */
  answersOf(stores: TransactionStores<Tx>): Promise<TransactionAnswerStore<Tx>>;
  /** Sends a statement in the transaction: a promise of its end, or its end. */
  sql(tx: Tx, text: string): unknown;
  /** Writes what a constraint refuses at COMMIT, where there are such constraints. */
  readonly late: string;
  /** A statement that undoes the handler's writes, and whose error a handler may swallow. */
  readonly breaking: string;
  /** Statements that fail as the engine's conflicts between transactions do. */
  readonly conflicts: readonly string[];
  /** Ends the line of its own transaction. */
  readonly suicide: string;
  /** Ends another one's, which hears of it at its next statement. */
  kill(tx: Tx): Promise<unknown>;
  /** The ids of payments that have committed. */
  paid(): Promise<readonly string[]>;
  /** Sends a statement outside of any transaction, on a line of its own. */
  alone(text: string): Promise<unknown>;
  /** Resolves when some transaction waits for a lock. */
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

const nowhere = (): Promise<never> =>
  Promise.reject(new Error("SQLite has no lines, and nothing waits on it"));
const raise = (state: string): string => `DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '${state}'; END $$`;
const signal = (errno: number): string => `SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = ${errno}`;

const postgresql: Engine = {
  name: "postgresql",
  isThere: postgresUrl !== undefined,
  async open() {
    const { another, pool, schema } = await newPayouts();
    const options = `-c search_path=${schema}`;
    const own = connectPool({ max: 4, options });
    await own.query(`${paymentsTable}; ${laterTable("REFERENCES later (id)")}`);
    return {
      process({ now, connections: max = 8, isolation = "read\\ committed", wrap = same } = {}) {
        const settings = `${options} -c default_transaction_isolation=${isolation}`;
        const its = connectPool({ max, options: settings });
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- rows know no type of tx
        return another({ now, database: wrap(fromPg(its) as never) }) as unknown as TransactionStores<Tx>;
      },
      async answersOf({ transactions: { database } }) {
        await migratePostgresAnswers(pool, { schema });
        return closed(
          createPostgresAnswers({ database: database as Database<Tx>, schema, pruneIntervalMs: 0 }),
        );
      },
      sql: (tx: { query(text: string): unknown }, text) => tx.query(text),
      late,
      breaking: "SELECT 1 / 0",
      conflicts: ["40001", "40P01"].map(raise),
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
    own.exec(`${paymentsTable}; ${laterTable("REFERENCES later (id)")};
      CREATE TABLE once (id TEXT PRIMARY KEY ON CONFLICT ROLLBACK); INSERT INTO once VALUES ('a')`);
    return {
      process({ now } = {}) {
        const database = connect(file);
        database.exec("PRAGMA foreign_keys = ON");
        const stores = createSqliteStores({ database, now, pruneIntervalMs: 0 });
        afterTest(() => stores.close());
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- rows know no type of tx
        return stores as unknown as TransactionStores<Tx>;
      },
      answersOf: async ({ transactions: { database } }) =>
        closed(createSqliteAnswers({ database: database as never, pruneIntervalMs: 0 })),
      sql: (tx: { exec(text: string): unknown }, text) => void tx.exec(text),
      late,
      breaking: "INSERT INTO once VALUES ('a')",
      conflicts: [],
      suicide: "",
      kill: nowhere,
      paid: async () =>
        own
          .prepare("SELECT id FROM payments")
          .all()
          .map((row) => String(Reflect.get(Object(row), "id"))),
      alone: async (text) => own.exec(text),
      untilBlocked: nowhere,
    };
  },
};

const mariadb: Engine = {
  name: "mariadb",
  isThere: mysqlUrl !== undefined,
  async open() {
    const database = isolatedName("doors");
    const server = mysql.connectPool();
    await server.query(`CREATE DATABASE ${database}`);
    afterTest(() => server.query(`DROP DATABASE ${database}`));
    const own = mysql.connectPool({ database });
    const table = await mysql.createTables(own);
    await own.query(paymentsTable);
    return {
      process({ now, connections = 8, wrap = same } = {}) {
        const its = fromMysql2(mysql.connectPool({ database, connectionLimit: connections }));
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- rows know no type of tx
        const stores = createMysqlStores({ table, now, database: wrap(its as never), pruneIntervalMs: 0 });
        afterTest(() => stores.close());
        return stores;
      },
      answersOf: async ({ transactions: { database: its } }) =>
        closed(createMysqlAnswers({ database: its as Database<Tx>, table, pruneIntervalMs: 0 })),
      sql: (tx: { query(text: string): unknown }, text) => tx.query(text),
      late: "",
      breaking: "",
      conflicts: [1213, 1020].map(signal),
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
