import type { SqlValue } from "@countersign/idempotency";
import { pooledClients, StatementGate, type PooledClient, type Row } from "@countersign/idempotency/store";
import { ends, gatedConnection, gatedStatement, refusedEnd, sendThrough } from "./gated-connection.ts";
import { compound, compoundRows, inTransaction } from "./rows.ts";
import { untilClosed } from "./transaction.ts";

export type QueryResult = readonly [result: unknown, fields: unknown];

/** A connection of `mysql2/promise` with a transaction open on it, as the handler gets it. */
export interface Mysql2Connection {
  query(text: string, values?: SqlValue[]): Promise<QueryResult>;
  release(): void;
  destroy(): void;
}

const caller = "fromMysql2";
const senders = ["query", "execute", "prepare"];

/**
 * One transaction on a connection taken out of a pool. START TRANSACTION goes with the first script in one message; before any other first
 * statement it goes alone, and is waited for. Work that goes on after the end would commit alone, or in somebody else's transaction: its
 * statements are refused.
 */
export class Mysql2Transaction<Connection extends Mysql2Connection> {
  /** For the work. */
  readonly connection: Connection;
  readonly gate: StatementGate = new StatementGate(caller, "mysql");
  readonly #taken: Connection;
  #start: Promise<QueryResult> | undefined;
  #isStarted = false;
  #isOver = false;
  #hasEnded = false;

  constructor(taken: Connection) {
    this.#taken = taken;
    const { gate } = this;
    const isStarted = (): boolean => this.#isStarted;
    this.connection = pooledClients.with(taken, {
      ...Object.fromEntries(senders.map((name) => [name, this.#lent(name)])),
      ...Object.fromEntries(ends.map((name) => [name, refusedEnd(caller, name)])),
      get connection(): unknown {
        if (isStarted())
          return gatedConnection(caller, Object(Reflect.get(taken, "connection")), gate, "events");
        throw new TypeError("fromMysql2: the first statement of a transaction must go by query or execute");
      },
      release() {
        throw new Error("fromMysql2: the connection goes back to the pool after COMMIT; do not release it");
      },
    });
  }

  async run<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    let result: T;
    try {
      result = await untilClosed(caller, this.gate, () => work(this.connection));
      this.gate.end();
      this.#hasEnded = true;
      await this.#start;
      if (this.#isOpen) await this.#taken.query("COMMIT");
    } catch (error) {
      this.gate.end();
      this.#hasEnded = true;
      if (this.#isOpen) await pooledClients.rollBack(pooled(this.#taken));
      else this.#taken.release();
      throw error;
    }
    this.#taken.release();
    return result;
  }

  /** Sends a statement of the store's own, which passes no gate. */
  async query(text: string, values: SqlValue[]): Promise<unknown> {
    this.#assertOpen();
    const [result] = await this.#afterStartOf(() => this.#taken.query(text, values));
    // Only what is no list of rows tells about the session.
    this.#isOver = !Array.isArray(result) && isOver(result);
    return result;
  }

  async script(text: string): Promise<readonly Row[]> {
    this.#assertOpen();
    const [result] = await this.#sendScript(text);
    this.#isOver = isOver(Array.isArray(result) ? result.at(-1) : result);
    return compoundRows("mysql2", result);
  }

  get #isOpen(): boolean {
    return this.#start !== undefined && !this.#isOver;
  }

  #lent(name: string): (...values: unknown[]) => unknown {
    const method: unknown = Reflect.get(this.#taken, name);
    const { gate } = this;
    const send = (values: readonly unknown[]): unknown => {
      const sent = (): unknown =>
        typeof method === "function" ? Reflect.apply(method, this.#taken, [...values]) : undefined;
      return this.#isStarted ? this.#notOver(sent) : this.#afterStartOf(sent);
    };
    // What a prepared statement executes later passes the gate too.
    const given =
      name === "prepare"
        ? (statement: unknown): unknown => gatedStatement(Object(statement), gate, "promise")
        : undefined;
    return (...values) => sendThrough({ gate, style: "promise", values, send, given });
  }

  #notOver<T>(send: () => T): T {
    this.#isOver = false;
    return send();
  }

  /** Sends what follows START TRANSACTION, and that before it. */
  #afterStartOf<T>(send: () => T | Promise<T>): Promise<T> {
    this.#isOver = false;
    this.#start ??= this.#startBy("START TRANSACTION");
    return this.#afterStart(send);
  }

  async #sendScript(text: string): Promise<QueryResult> {
    this.#isOver = false;
    if (this.#start === undefined) {
      this.#start = this.#startBy(compound(`START TRANSACTION;\n${text}`));
      return this.#start;
    }
    const send = (): Promise<QueryResult> => this.#taken.query(compound(text));
    // Queued behind a first script that is under way, or has failed: it mends what that has left.
    return /^\s*ROLLBACK\b/i.test(text) ? send() : this.#afterStart(send);
  }

  async #startBy(text: string): Promise<QueryResult> {
    const answer = await this.#taken.query(text);
    this.#isStarted = true;
    return answer;
  }

  /** Without a START TRANSACTION that was answered the statement would commit by itself. */
  async #afterStart<T>(send: () => T | Promise<T>): Promise<T> {
    await this.#start;
    this.#assertOpen();
    return send();
  }

  #assertOpen(): void {
    if (this.#hasEnded) throw hasEnded();
  }
}

function hasEnded(): Error {
  return new Error("fromMysql2: the transaction has ended; let the work settle after all of its statements");
}

// In the flags of the server's answers.
const autocommit = 2;

/** Whether the server's answer says that nothing is left to be committed. */
function isOver(header: unknown): boolean {
  const flags: unknown = Reflect.get(Object(header), "serverStatus");
  // oxlint-disable-next-line no-bitwise -- as the protocol has it
  return typeof flags === "number" && (flags & (inTransaction | autocommit)) === autocommit;
}

function pooled(connection: Mysql2Connection): PooledClient {
  return {
    query: (text) => connection.query(text),
    release(destroy) {
      if (destroy === true) connection.destroy();
      else connection.release();
    },
  };
}
