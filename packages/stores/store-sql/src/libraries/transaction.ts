import { StatementGate, transactionBroken } from "@countersign/idempotency/store";
import type { Dialect } from "./driver-connection.ts";
import { refusedEnd } from "./gated-connection.ts";

/** The transactions of one library that are open, or were: each `tx` with the gate of its handler's statements. */
export class GatedTransactions<Tx extends object> {
  readonly #library: string;
  readonly #dialect: Dialect;
  readonly #gates = new WeakMap<Tx, StatementGate>();

  constructor(library: string, dialect: Dialect) {
    this.#library = library;
    this.#dialect = dialect;
  }

  gateOf(tx: Tx): StatementGate | undefined {
    return this.#gates.get(tx);
  }

  /**
   * Runs `work` in a transaction that `open` opens. `through` makes the statements of its `tx` pass the gate, and returns what `work` is
   * given. Rejects with the error of `work` itself, even if the rollback fails too.
   */
  async run<T>(
    open: (work: (opened: Tx) => Promise<void>) => Promise<unknown>,
    through: (opened: Tx, gate: StatementGate) => Tx | Promise<Tx>,
    work: (tx: Tx) => Promise<T>,
  ): Promise<T> {
    const gate = new StatementGate(this.#library, this.#dialect);
    const begun: Promise<T>[] = [];
    try {
      await open(async (opened) => {
        const tx = await through(opened, gate);
        this.#gates.set(tx, gate);
        const running = untilClosed(this.#library, gate, () => work(tx));
        begun.push(running);
        await running;
      });
    } catch (error) {
      await Promise.all(begun);
      throw error;
    } finally {
      gate.end();
    }
    const [done] = begun;
    if (done === undefined) throw new Error(`${this.#library} has committed without running the work`);
    return done;
  }
}

/** Does the work, and closes the gate for all but the library's COMMIT or ROLLBACK. Rejects where a statement was not answered by then. */
export async function untilClosed<T>(
  library: string,
  gate: StatementGate,
  work: () => Promise<T>,
): Promise<T> {
  let result: T;
  try {
    result = await work();
    const { unanswered } = await gate.close();
    if (unanswered > 0) {
      throw transactionBroken(
        `${library} had not answered ${unanswered} of its statements when it settled; await every statement`,
      );
    }
  } catch (error) {
    await gate.close();
    gate.closeFor("ROLLBACK");
    throw error;
  }
  gate.closeFor("COMMIT");
  return result;
}

/**
 * Does the work; meanwhile `commit` and `rollback` of its transaction throw. They would give the connection back to the pool, on MariaDB with
 * autocommit off, where the app's next writes would never commit, and what the work writes after them would commit without the key.
 */
export async function withoutEnd<Tx extends object, T>(
  caller: string,
  tx: Tx,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  const own = ["commit", "rollback"].map(
    (name) => [name, Object.getOwnPropertyDescriptor(tx, name)] as const,
  );
  for (const [name] of own) {
    Object.defineProperty(tx, name, { value: refusedEnd(caller, name), configurable: true, writable: true });
  }
  try {
    return await work(tx);
  } finally {
    for (const [name, descriptor] of own) {
      if (descriptor === undefined) Reflect.deleteProperty(tx, name);
      else Object.defineProperty(tx, name, descriptor);
    }
  }
}

/**
 * For a COMMIT that PostgreSQL answered with ROLLBACK, as it does, without an error, when a statement failed and the work went on: nothing
 * was written. Has the SQLSTATE of statements in such a transaction.
 */
export function rolledBack(caller: string): Error {
  const message = `${caller}: the transaction was rolled back, because a statement in it had failed; let its error through`;
  return Object.assign(new Error(message), { code: "25P02" });
}
