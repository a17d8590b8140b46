// The stores on SQLite, as a user of the kit would hand them to it.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Awaitable } from "@countersign/idempotency";
import type { StoreHarnesses } from "@countersign/store-contract";
import {
  type SqliteAnswerStore,
  type SqliteStores,
  type SqliteStoresOptions,
  createAnswers,
  createStores,
} from "@countersign/store-sql";
import { type Connection, type Open, openLibsql } from "../../store-sql/test/sqlite/connections.ts";
import { fillAnswers, fillKeys, fillNonces } from "./fill.ts";
import type { Clock } from "./memory-harness.ts";

/** The file is the engine: there is no server to stop. */
export const onFile = ["engine", "durability"] as const;

/** Connections to one database, and the stores on them. */
export class SqliteDatabaseOfTest {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #open: Open;
  readonly #directory: string | undefined;
  readonly #connections: Connection[] = [];
  readonly #stores: { close(): void }[] = [];

  constructor(where: "file" | "memory", clock: Clock, open: Open = openLibsql) {
    this.#clock = clock;
    this.#open = open;
    this.#directory = where === "file" ? mkdtempSync(join(tmpdir(), "store-contract-")) : undefined;
    this.#path = this.#directory === undefined ? ":memory:" : join(this.#directory, "platform.db");
  }

  get path(): string {
    return this.#path;
  }

  connect(): Connection {
    const connection = this.#open(this.#path);
    this.#connections.push(connection);
    return connection;
  }

  open(database: Connection): SqliteStores<Connection> {
    return this.#opened(database, (options) => createStores(options));
  }

  openAnswers(database: Connection): SqliteAnswerStore<Connection> {
    return this.#opened(database, (options) => createAnswers(options));
  }

  #opened<Made extends { close(): void }>(
    database: Connection,
    create: (options: SqliteStoresOptions<Connection>) => Made,
  ): Made {
    const { now } = this.#clock;
    const stores = create({ database, pruneIntervalMs: 0, ...(now && { now }) });
    this.#stores.push(stores);
    // The stores ask for five seconds, in which a synchronous driver blocks the one who would let go of the lock.
    database.exec("PRAGMA busy_timeout = 50");
    return stores;
  }

  close(): void {
    for (const stores of this.#stores) stores.close();
    for (const connection of this.#connections) connection.close();
    if (this.#directory !== undefined) rmSync(this.#directory, { recursive: true });
  }
}

/** Which connections: in memory there is only one. */
type Where = "file" | "memory";

/** What the harnesses of all stores have, on a connection of their own. */
function harnessOn<Store>(
  database: SqliteDatabaseOfTest,
  own: Connection,
  { where, clock }: { readonly where: Where; readonly clock: Clock },
  storeOn: (connection: Connection) => Store,
  fill: (store: Store) => Promise<void>,
) {
  const store = storeOn(own);
  return {
    store,
    path: database.path,
    ...(clock.advance && { advance: clock.advance }),
    ...(where === "file" && { another: () => storeOn(database.connect()) }),
    async fill() {
      own.exec(`PRAGMA max_page_count = ${pageCount(own)}`);
      await fill(store);
    },
    close: () => database.close(),
  };
}

export function sqliteHarness(
  where: Where,
  clock: Clock = {},
  open?: Open,
): StoreHarnesses["idempotency"] & { path: string } {
  const database = new SqliteDatabaseOfTest(where, clock, open);
  const own = database.connect();
  const storeOn = (connection: Connection) => database.open(connection).idempotency;
  return harnessOn(database, own, { where, clock }, storeOn, fillKeys);
}

export function sqliteNonceHarness(
  where: Where,
  clock: Clock = {},
): StoreHarnesses["nonces"] & { path: string } {
  const database = new SqliteDatabaseOfTest(where, clock);
  const storeOn = (connection: Connection) => database.open(connection).nonces;
  return harnessOn(database, database.connect(), { where, clock }, storeOn, fillNonces);
}

export function sqliteAnswerHarness(clock: Clock = {}): StoreHarnesses<Connection>["answers"] {
  const database = new SqliteDatabaseOfTest("file", clock);
  const own = database.connect();
  const storeOn = (connection: Connection) => database.openAnswers(connection);
  return {
    ...harnessOn(database, own, { where: "file", clock }, storeOn, fillAnswers),
    transaction: (work) => inTransaction(own, work),
  };
}

async function inTransaction<Tx extends Connection>(
  tx: Tx,
  work: (tx: Tx) => Awaitable<void>,
): Promise<void> {
  tx.exec("BEGIN IMMEDIATE");
  try {
    await work(tx);
    tx.exec("COMMIT");
  } catch (error) {
    tx.exec("ROLLBACK");
    throw error;
  }
}

function pageCount(database: Connection): number {
  const { page_count: count } = database.prepare("PRAGMA page_count").get() as { page_count: number };
  return count;
}
