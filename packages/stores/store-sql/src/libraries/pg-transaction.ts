import {
  pooledClients,
  StatementGate,
  watchCommits,
  type PooledClient,
} from "@countersign/idempotency/store";
import { sendThrough } from "./gated-connection.ts";
import { rolledBack, untilClosed } from "./transaction.ts";

/** A client of `pg` with a transaction open on it, as the handler gets it. */
export interface PgClient extends PooledClient {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
}

/**
 * One transaction on a client taken out of a pool. Its BEGIN goes with the first script in one message; before any other first statement
 * it goes alone, and is waited for. Work that goes on after the end would commit alone, or in somebody else's transaction: its statements
 * are refused.
 */
export class PgTransaction<Client extends PgClient> {
  /** For the work. */
  readonly client: Client;
  readonly gate: StatementGate = new StatementGate("fromPg", "postgresql");
  readonly #taken: Client;
  /** For its way back to the pool. */
  readonly #lent: PooledClient;
  readonly #send: (...values: unknown[]) => unknown;
  #begin: Promise<unknown> | undefined;
  #isBegun = false;
  #hasEnded = false;

  constructor(taken: Client) {
    this.#taken = taken;
    this.#lent = releasedOnce(taken);
    const query: unknown = Reflect.get(taken, "query");
    this.#send = (...values) => Reflect.apply(Object(query), taken, values);
    this.client = pooledClients.with(taken, {
      query: (...values: unknown[]) =>
        sendThrough({ gate: this.gate, style: "promise", values, send: (all) => this.#query(all) }),
      release() {
        throw new Error("fromPg: the client goes back to the pool after COMMIT; do not release it");
      },
    });
  }

  async run<T>(work: (client: Client) => Promise<T>): Promise<T> {
    let result: T;
    try {
      result = await untilClosed("fromPg", this.gate, () => work(this.client));
      this.gate.end();
      this.#hasEnded = true;
      await this.#begin;
    } catch (error) {
      this.gate.end();
      this.#hasEnded = true;
      await this.#rollBack();
      throw error;
    }
    await this.#commit();
    return result;
  }

  /** Sends a statement of the store's own, which passes no gate. */
  async query(text: string, values: readonly unknown[]): Promise<unknown> {
    this.#assertOpen();
    return watchCommits(this.#taken, () => this.#query([text, [...values]]));
  }

  async script(text: string): Promise<unknown> {
    this.#assertOpen();
    return watchCommits(this.#taken, () =>
      this.#begin === undefined
        ? this.#beginBy(`BEGIN; ${text}`)
        : this.#afterBegin(() => this.#taken.query(text)),
    );
  }

  #query(values: readonly unknown[]): unknown {
    if (this.#isBegun) return this.#send(...values);
    // What answers otherwise than by a promise cannot wait for BEGIN.
    const [first] = values;
    if (typeof first !== "string" || values.some((value) => typeof value === "function")) {
      throw new TypeError("fromPg: the first statement of a transaction must be text, without a callback");
    }
    if (this.#begin === undefined) void this.#beginBy("BEGIN").catch(() => {});
    return this.#afterBegin(() => this.#send(...values));
  }

  async #beginBy(text: string): Promise<unknown> {
    const begin = this.#taken.query(text);
    this.#begin = begin;
    const result = await begin;
    this.#isBegun = true;
    return result;
  }

  /** Without a BEGIN that was answered the statement would commit by itself. */
  async #afterBegin(send: () => unknown): Promise<unknown> {
    await this.#begin;
    this.#assertOpen();
    return send();
  }

  async #commit(): Promise<void> {
    if (this.#begin === undefined) {
      pooledClients.release(this.#lent);
      return;
    }
    let result: unknown;
    try {
      result = await watchCommits(this.#taken, () => this.#taken.query("COMMIT"));
    } catch (error) {
      // It has no effect behind a COMMIT that was refused, and tells whether the line still works.
      await pooledClients.rollBack(this.#lent);
      throw error;
    }
    pooledClients.release(this.#lent);
    if (Reflect.get(Object(result), "command") === "ROLLBACK") throw rolledBack("fromPg");
  }

  async #rollBack(): Promise<void> {
    if (this.#begin === undefined) pooledClients.release(this.#lent);
    else await pooledClients.rollBack(this.#lent);
  }

  #assertOpen(): void {
    if (this.#hasEnded) throw hasEnded();
  }
}

function hasEnded(): Error {
  return new Error("fromPg: the transaction has ended; let the work settle after all of its statements");
}

/** Gives its place in the pool back, once: at the first release, or when its session is lost, which work that never ends may outlive. */
function releasedOnce(taken: PooledClient): PooledClient {
  let isReleased = false;
  const release = (destroy?: boolean | Error): void => {
    if (isReleased) return;
    isReleased = true;
    taken.removeListener?.("error", onLost);
    taken.release(destroy);
  };
  const onLost = (): void => release(true);
  taken.on?.("error", onLost);
  return pooledClients.with(taken, { release });
}
