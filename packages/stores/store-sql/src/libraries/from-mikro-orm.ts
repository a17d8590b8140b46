import type { Database, ConnectionPool, SqlValue, StatementGate } from "@countersign/idempotency";
import type { Row, Within } from "@countersign/idempotency/store";
import {
  assertDriverConnection,
  changeOn,
  dialectOf,
  onLent,
  sendOn,
  type Dialect,
  type DriverConnection,
  type Lender,
} from "./driver-connection.ts";
import { knexPool, passThrough as passKnexThrough, storesOwn } from "./from-knex.ts";
import {
  changeByKysely,
  type KyselyExecutor,
  passThrough as passKyselyThrough,
  sendByKysely,
  sendScriptByKysely,
} from "./kysely-executor.ts";
import { GatedTransactions, withoutEnd } from "./transaction.ts";

interface KnexClient extends Lender {
  readonly driverName: unknown;
}

/** Of MikroORM 6. */
interface KnexConnection {
  getKnex(): { readonly client: KnexClient };
}

/** Of MikroORM 7. */
interface KyselyConnection {
  ensureConnection(): Promise<void>;
  getClient(): KyselyExecutor;
}

export interface MikroOrmManager {
  fork(): this;
  transactional(work: (em: this) => Promise<void>): Promise<unknown>;
  flush(): Promise<void>;
  clear(): void;
  getContext(validate: false): this;
  getTransactionContext(): unknown;
  getConnection(type: "write"): KnexConnection | KyselyConnection;
  getPlatform(): object;
}

interface Line {
  /** Without values, several statements. */
  send(text: string, values?: readonly SqlValue[]): Promise<readonly Row[]>;
  /** On MySQL and MariaDB. */
  change(text: string, values: readonly SqlValue[]): Promise<number>;
}

interface Sender {
  readonly dialect: Dialect;
  readonly sendsScripts: boolean;
  readonly tellsUnconfirmed: boolean;
  readonly tellsOpen: boolean;
  readonly pool: ConnectionPool | undefined;
  /** Outside of any transaction. */
  readonly alone: Line;
  /** Makes the statements of a transaction pass the gate, but not those of {@link Sender.inside}. */
  passThrough(context: unknown, gate: StatementGate): Promise<void>;
  /** Undefined unless the context is that of an open transaction: MikroORM keeps one that has ended. */
  inside(context: unknown): Promise<Line | undefined>;
}

const caller = "fromMikroOrm";
const dialects = new Map<unknown, Dialect>([
  ["pg", "postgresql"],
  ["mysql2", "mysql"],
  ["postgresql:", "postgresql"],
  ["mysql:", "mysql"],
]);

/** An instance of MikroORM 6 or 7; handlers get a fork of its `em`. What they persist is flushed before the key's last statement. */
export function fromMikroOrm<Em extends MikroOrmManager>(orm: { readonly em: Em }): Database<Em> {
  const connection = orm.em.getConnection("write");
  const sender = "getKnex" in connection ? byKnex(connection) : byKysely(connection, orm.em.getPlatform());
  const send = async (em: Em, text: string, values?: readonly SqlValue[]) =>
    (await lineOf(em, sender)).send(text, values);
  const transactions = new GatedTransactions<Em>("MikroORM", sender.dialect);
  return {
    dialect: sender.dialect,
    library: "MikroORM",
    tellsUnconfirmed: sender.tellsUnconfirmed,
    tellsOpen: sender.tellsOpen,
    pool: () => sender.pool,
    run: (work) =>
      transactions.run(
        (run) => orm.em.fork().transactional(run),
        async (em: Em, gate) => {
          const context = em.getTransactionContext();
          await untilBegun(context);
          await sender.passThrough(context, gate);
          return em;
        },
        (em) => withoutEnd(caller, em, async () => flushed(em, work)),
      ),
    gateOf: (em) => transactions.gateOf(em),
    // The flush of `transactional` would come after the store's last statement.
    flush: (em) => em.flush(),
    query: send,
    alone: (text, values) => sender.alone.send(text, values),
    ...(sender.dialect === "mysql" && {
      async change(text: string, values: readonly SqlValue[], within?: Within<Em>) {
        const line = within === undefined ? sender.alone : await lineOf(within.tx, sender);
        return line.change(text, values);
      },
    }),
    ...(sender.sendsScripts && { script: (em: Em, text: string) => send(em, text) }),
  };
}

/** Drops what a failed handler has persisted: a flush of MikroORM's would send it before the rollback. */
async function flushed<Em extends MikroOrmManager, T>(em: Em, work: (em: Em) => Promise<T>): Promise<T> {
  try {
    const result = await work(em);
    await em.flush();
    return result;
  } catch (error) {
    em.clear();
    throw error;
  }
}

async function lineOf(em: MikroOrmManager, sender: Sender): Promise<Line> {
  // The global `em` would find the transaction of its asynchronous context, or none.
  const isOwn = typeof em.getContext === "function" && em.getContext(false) === em;
  const line = isOwn ? await sender.inside(em.getTransactionContext()) : undefined;
  if (line !== undefined) return line;
  throw new TypeError(`${caller}: needs the em that the handler was given, in its open transaction`);
}

function byKnex(connection: KnexConnection): Sender {
  const { client } = connection.getKnex();
  const dialect = dialectOf(caller, client.driverName, dialects);
  return {
    dialect,
    sendsScripts: true,
    tellsUnconfirmed: dialect === "postgresql",
    tellsOpen: dialect === "mysql",
    pool: knexPool(client),
    alone: lineOn((send) => onLent(caller, client, send), { dialect, isWithin: false }),
    async passThrough(context, gate) {
      if (isOpenKnex(context)) await passKnexThrough(caller, context.client, gate);
    },
    async inside(context) {
      if (!isOpenKnex(context)) return undefined;
      const taken = await storesOwn(context.client).acquireConnection();
      assertDriverConnection(caller, taken);
      return lineOn((send) => send(taken), { dialect, isWithin: true });
    },
  };
}

function lineOn(
  withConnection: <T>(send: (connection: DriverConnection) => Promise<T>) => Promise<T>,
  { dialect, isWithin }: { readonly dialect: Dialect; readonly isWithin: boolean },
): Line {
  return {
    send: (text, values) =>
      withConnection((connection) => sendOn(connection, dialect, { text, ...(values && { values }) })),
    change: (text, values) =>
      withConnection((connection) => changeOn(connection, { text, values }, isWithin)),
  };
}

/** Knex gives a transaction even when its BEGIN has failed, and keeps the error. */
async function untilBegun(context: unknown): Promise<void> {
  if (typeof context !== "function" || isOpenKnex(context)) return;
  const begun: Promise<unknown> | undefined = Reflect.get(context, "executionPromise");
  await begun;
}

function isOpenKnex(context: unknown): context is { readonly client: KnexClient } {
  if (typeof context !== "function") return false;
  const isCompleted: unknown = Reflect.get(context, "isCompleted");
  return typeof isCompleted === "function" && isCompleted() === false;
}

function byKysely(connection: KyselyConnection, platform: object): Sender {
  const dialect = dialectOf(caller, protocolOf(platform), dialects);
  return {
    dialect,
    // On PostgreSQL Kysely drops the rows of several statements.
    sendsScripts: dialect === "mysql",
    // Kysely hides the connection, and what it says beside the results.
    tellsUnconfirmed: false,
    tellsOpen: false,
    // Kysely hides it.
    pool: undefined,
    alone: lineBy(async () => {
      // It makes its client at the first use.
      await connection.ensureConnection();
      return connection.getClient();
    }, dialect),
    async passThrough(context, gate) {
      if (isOpenKysely(context)) passKyselyThrough(context, gate);
    },
    async inside(context) {
      return isOpenKysely(context) ? lineBy(async () => context, dialect) : undefined;
    },
  };
}

function lineBy(executor: () => Promise<KyselyExecutor>, dialect: Dialect): Line {
  return {
    async send(text, values) {
      if (values === undefined) return sendScriptByKysely(await executor(), text);
      return sendByKysely(await executor(), dialect, text, values);
    },
    change: async (text, values) => changeByKysely(await executor(), text, values),
  };
}

/** What tells the engine before a client is there: that of SQLite is empty. */
function protocolOf(platform: object): string {
  const url: unknown = Reflect.apply(Reflect.get(platform, "getDefaultClientUrl"), platform, []);
  return /^\w+:/.exec(String(url))?.[0] ?? "sqlite";
}

function isOpenKysely(context: unknown): context is KyselyExecutor {
  const [isTransaction, isCommitted, isRolledBack] = ["isTransaction", "isCommitted", "isRolledBack"].map(
    (name): unknown => Reflect.get(Object(context), name),
  );
  return isTransaction === true && isCommitted === false && isRolledBack === false;
}
