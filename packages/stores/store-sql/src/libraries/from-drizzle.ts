import type { Database, SqlValue, StatementGate } from "@countersign/idempotency";
import { pooledClients, watchCommits, type ClientPool, type Within } from "@countersign/idempotency/store";
import { driverPool } from "./pool-size.ts";
import { changedAlone, changedRows, compound, compoundRows, rowList, rowsOf } from "./rows.ts";
import { driverValues, onSqlite, type Dialect } from "./driver-connection.ts";
import type { PgClient } from "./from-pg.ts";
import { gatedConnection } from "./gated-connection.ts";
import { GatedTransactions } from "./transaction.ts";

/** As much of Drizzle's `SQL` as `execute` calls. */
interface DrizzleSql {
  toQuery(config: never): { sql: string; params: unknown[] };
}

/**
 * The rows of pg or the answer of mysql2. A result of postgres.js has a `statement`: Drizzle on it is no type of ours, see
 * {@link fromDrizzle}.
 */
type DrizzleResult = object & { readonly statement?: never };

interface DrizzleExecutor {
  execute(query: string | { getSQL(): DrizzleSql }): PromiseLike<DrizzleResult>;
}

export interface DrizzleTransaction extends DrizzleExecutor {
  rollback(): never;
}

export interface DrizzleDb<Tx extends DrizzleTransaction> extends DrizzleExecutor {
  transaction(work: (tx: Tx) => Promise<void>): Promise<unknown>;
}

const library = "Drizzle";

/**
 * A Drizzle database on a pool of pg or mysql2; handlers get the `tx` of its `transaction`. Throws a TypeError on another one. Drizzle on
 * postgres.js is refused, by its type too: give Drizzle a pool of pg, or pay by `fromPostgresJs(sql)`. Drizzle does not tell that
 * PostgreSQL answered COMMIT with ROLLBACK: only a last statement finds that out.
 */
export function fromDrizzle<Tx extends DrizzleTransaction>(db: DrizzleDb<Tx>): Database<Tx> {
  const dialect = dialectOf(db);
  if (dialect === "postgresql") survivesLostClients(Reflect.get(db, "$client"));
  const send = ({ executor, client }: Sender, text: string, values: readonly SqlValue[]) => {
    const sent = () => executor.execute(statement(text, driverValues(dialect, values)));
    return dialect === "postgresql" ? watchCommits(client, sent) : sent();
  };
  const transactions = new GatedTransactions<Tx>(library, dialect);
  // The same transactions for the store, whose statements pass no gate.
  const own = new WeakMap<Tx, Sender>();
  const ownOf = (tx: Tx): Sender => {
    // A nested transaction has none: its statements pass the gate, and are the handler's.
    const sender = own.get(tx) ?? (isTransaction(entityKinds(tx)) ? { executor: tx } : undefined);
    if (sender !== undefined) return sender;
    throw new TypeError("fromDrizzle: needs the tx that the handler was given, before its end");
  };
  return {
    dialect,
    library,
    tellsOpen: dialect === "mysql",
    tellsUnconfirmed: dialect === "postgresql",
    pool: () => driverPool(Reflect.get(db, "$client")),
    run: (work) =>
      transactions.run(
        (run) => transactionOf(db, run),
        (tx: Tx, gate) => {
          own.set(tx, passingBy(tx, gate));
          return tx;
        },
        async (tx) => {
          try {
            return await work(tx);
          } finally {
            own.delete(tx);
          }
        },
      ),
    gateOf: (tx) => transactions.gateOf(tx),
    query: async (tx, text, values) => resultRows(dialect, await send(ownOf(tx), text, values)),
    async alone(text, values) {
      // On a client that can be listened to.
      const pool = dialect === "postgresql" ? poolOf(db) : undefined;
      if (pool !== undefined) return rowsOf(library, await pooledClients.query(pool, text, values));
      return resultRows(dialect, await send({ executor: db }, text, values));
    },
    ...(dialect === "mysql" && {
      async change(text: string, values: readonly SqlValue[], within?: Within<Tx>) {
        const result = await send(within === undefined ? { executor: db } : ownOf(within.tx), text, values);
        const [header]: readonly unknown[] = Array.isArray(result) ? result : [];
        if (within === undefined) return changedAlone(library, header);
        return changedRows(library, Reflect.get(Object(header), "affectedRows"));
      },
    }),
    async script(tx, text) {
      const results = await send(ownOf(tx), dialect === "mysql" ? compound(text) : text, []);
      const all: readonly unknown[] = Array.isArray(results) ? results : [results];
      if (dialect === "mysql") return compoundRows(library, all[0]);
      return all.flatMap((result) => rowsOf(library, result));
    },
  };
}

interface Sender {
  readonly executor: DrizzleExecutor;
  /** The driver's, where it is known. */
  readonly client?: object;
}

/** Makes the transaction's session send through the gate. Returns the transaction on a session that does not. */
function passingBy(tx: DrizzleTransaction, gate: StatementGate): Sender {
  const session: unknown = Reflect.get(tx, "session");
  const client: unknown =
    typeof session === "object" && session !== null ? Reflect.get(session, "client") : null;
  if (typeof client !== "object" || client === null || typeof session !== "object" || session === null) {
    throw new TypeError("fromDrizzle: needs a Drizzle whose transactions have a session with a client");
  }
  const executor = copyOf(tx);
  Reflect.set(executor, "session", copyOf(session));
  Reflect.set(session, "client", gatedConnection("fromDrizzle", client, gate, "promise"));
  return { executor, client };
}

function copyOf<Value extends object>(value: Value): Value {
  const copy: Value = Object.create(Object.getPrototypeOf(value));
  return Object.assign(copy, value);
}

/**
 * Drizzle never gives a client of pg back whose BEGIN has failed: each line that a failover has cut would leave the pool with one less.
 * It takes the client in the call itself.
 */
async function transactionOf<Tx extends DrizzleTransaction>(
  db: DrizzleDb<Tx>,
  work: (tx: Tx) => Promise<void>,
): Promise<unknown> {
  const pool: unknown = Reflect.get(db, "$client");
  if (!isLending(pool)) return db.transaction(work);
  const own = Object.getOwnPropertyDescriptor(pool, "connect");
  const { connect } = pool;
  let lent: PromiseLike<LentClient | undefined> | undefined;
  let hasBegun = false;
  let ended: Promise<unknown>;
  pool.connect = (...sent) => {
    const client: PromiseLike<LentClient> = Reflect.apply(connect, pool, sent);
    // Its release() of this time: the next one that takes the client gets another.
    lent = client.then(
      ({ release }) => ({ release }),
      () => undefined,
    );
    return client;
  };
  try {
    ended = db.transaction((tx) => {
      hasBegun = true;
      return work(tx);
    });
  } finally {
    if (own === undefined) Reflect.deleteProperty(pool, "connect");
    else Object.defineProperty(pool, "connect", own);
  }
  try {
    return await ended;
  } catch (error) {
    if (!hasBegun) await giveBack(lent);
    throw error;
  }
}

async function giveBack(lent: PromiseLike<LentClient | undefined> | undefined): Promise<void> {
  try {
    (await lent)?.release(true);
  } catch {
    // A later Drizzle has given it back.
  }
}

/** A statement as it is: Drizzle's own `sql` numbers the placeholders itself, so the text would have to be cut at them. */
function statement(sql: string, params: unknown[]): { getSQL(): DrizzleSql } {
  return { getSQL: () => ({ toQuery: () => ({ sql, params }) }) };
}

/** The names of an object's classes: Drizzle's `is` compares these too, as they outlive bundlers and second copies. */
function entityKinds(value: unknown): ReadonlySet<unknown> {
  const kinds = new Set<unknown>();
  let prototype: unknown = typeof value === "object" && value !== null ? Object.getPrototypeOf(value) : null;
  while (typeof prototype === "object" && prototype !== null) {
    kinds.add(Reflect.get(prototype.constructor, Symbol.for("drizzle:entityKind")));
    prototype = Object.getPrototypeOf(prototype);
  }
  return kinds;
}

/**
 * Drivers that were tested, and pools as Drizzle sees them: on a single client all requests would share one transaction. postgres.js is
 * none of them: it rolls back all of a transaction in which any statement has failed, after ROLLBACK TO as well.
 */
function dialectOf(db: object): Dialect {
  const kinds = entityKinds(db);
  const client = Object(Reflect.get(db, "$client"));
  if (kinds.has("NodePgDatabase") && String(client.constructor?.name).includes("Pool")) return "postgresql";
  if (kinds.has("MySql2Database") && "getConnection" in client) return "mysql";
  if (kinds.has("PostgresJsDatabase")) {
    throw new TypeError(
      "fromDrizzle: needs a Drizzle database on a pool of pg or mysql2, got one on postgres.js, which rolls back all of a transaction in " +
        "which any statement has failed; give Drizzle a pool of pg, drizzle(new Pool({ connectionString })) of drizzle-orm/node-postgres, " +
        "or give createStores the connection of postgres.js itself, fromPostgresJs(sql)",
    );
  }
  throw new TypeError(`fromDrizzle: needs a Drizzle database on a pool of pg or mysql2; ${onSqlite}`);
}

function isTransaction(kinds: ReadonlySet<unknown>): boolean {
  return kinds.has("PgTransaction") || kinds.has("MySqlTransaction");
}

const surviving = new WeakSet();

/**
 * Gives each client that the pool lends an `error` listener: pg-pool listens to idle ones alone, and Drizzle to none, so a session that
 * ends while a handler waits would end this process. At `acquire`, since it can end in the packet that begins it. What is lost is told by
 * the next statement.
 */
function survivesLostClients(pool: unknown): void {
  if (!isEmitter(pool) || surviving.has(pool)) return;
  surviving.add(pool);
  pool.on("acquire", (client) => {
    if (!isEmitter(client) || surviving.has(client)) return;
    surviving.add(client);
    client.on("error", () => {});
  });
}

interface LentClient {
  readonly release: (destroy: true) => void;
}

interface Lending {
  connect: (...sent: unknown[]) => PromiseLike<LentClient>;
}

function poolOf(db: object): ClientPool<PgClient> | undefined {
  const pool: unknown = Reflect.get(db, "$client");
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a pool of pg, by its class
  return isLending(pool) ? (pool as unknown as ClientPool<PgClient>) : undefined;
}

function isLending(pool: unknown): pool is Lending {
  return typeof pool === "object" && pool !== null && typeof Reflect.get(pool, "connect") === "function";
}

interface Emitter {
  on(event: string, listener: (value: unknown) => void): unknown;
}

function isEmitter(value: unknown): value is Emitter {
  return typeof value === "object" && value !== null && typeof Reflect.get(value, "on") === "function";
}

/** pg gives `{ rows }`, mysql2 `[rows or a header, fields]`. */
function resultRows(dialect: Dialect, result: unknown) {
  if (dialect === "postgresql") return rowsOf(library, result);
  const [rows]: readonly unknown[] = Array.isArray(result) ? result : [];
  return Array.isArray(rows) ? rowList(library, rows) : [];
}
