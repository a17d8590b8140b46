// An engine with several open transactions, made of SQLite: one of them has the database, and the others wait for its end.
import type { Awaitable } from "@countersign/idempotency";
import type { Connection } from "../../../store-sql/test/sqlite/connections.ts";

export class OpenTransactions {
  /** Resolves at the end of the transaction that has the database. */
  held: Promise<void> | undefined;
  readonly #database: Connection;
  readonly #ends = new Map<Connection, () => void>();
  /** Those whose handler has settled. */
  readonly #closed = new Set<Connection>();

  constructor(database: Connection) {
    this.#database = database;
  }

  has(tx: Connection): boolean {
    return this.#ends.has(tx);
  }

  openGate(tx: Connection): void {
    this.#closed.delete(tx);
  }

  closeGate(tx: Connection): void {
    this.#closed.add(tx);
  }

  /** Gives the database to this transaction. */
  lock(tx: Connection): void {
    this.held = new Promise((resolve) => {
      this.#ends.set(tx, () => {
        this.held = undefined;
        resolve();
      });
    });
    this.#database.exec("BEGIN IMMEDIATE");
  }

  async run<T>(work: (tx: Connection) => Awaitable<T>): Promise<T> {
    const tx: Connection = {
      exec: (sql) => this.#database.exec(sql),
      prepare: (sql) => {
        if (this.#closed.has(tx)) throw new Error("the handler's transaction is closed");
        return this.#database.prepare(sql);
      },
      close() {},
    };
    try {
      const result = await work(tx);
      if (this.has(tx)) this.#database.exec("COMMIT");
      return result;
    } catch (error) {
      if (this.has(tx)) this.#database.exec("ROLLBACK");
      throw error;
    } finally {
      this.#ends.get(tx)?.();
    }
  }
}
