import { setImmediate } from "node:timers/promises";
import { rolledBack } from "./transaction.ts";

export interface PostgresJsSender {
  unsafe(text: string, values?: unknown[]): PromiseLike<unknown>;
  typed(value: unknown, type: number): unknown;
}

export interface PostgresJsTransaction extends PostgresJsSender {
  savepoint(work: (tx: this) => Promise<unknown>): Promise<unknown>;
}

export interface PostgresJsPool<Tx extends PostgresJsTransaction> {
  begin: {
    (work: (tx: Tx) => Promise<void>): Promise<unknown>;
    (options: string, work: (tx: Tx) => Promise<void>): Promise<unknown>;
  };
}

/** A transaction of postgres.js that undoes, and goes on, as the server does. Rejects at once when its connection is lost. */
export async function beginPostgresJs<Tx extends PostgresJsTransaction>(
  sql: PostgresJsPool<Tx>,
  work: (tx: Tx) => Promise<void>,
): Promise<void> {
  let isOpen = true;
  let cause: unknown;
  const assertOpen = (): void => {
    // A lost connection is no mistake of the work's: the caller has to know it.
    if (!isOpen) throw new Error("the transaction has ended, or has lost its connection", { cause });
  };
  try {
    await sql.begin(async (outer) => {
      try {
        await work(guarded(await forgiving(outer), assertOpen));
        await commit(outer);
      } finally {
        // After a lost connection, COMMIT or ROLLBACK would go to the next transaction on it, or to no socket and end the process.
        await setImmediate();
        if (!isOpen) await pending();
      }
    });
  } catch (error) {
    cause = error;
    throw error;
  } finally {
    isOpen = false;
  }
}

/**
 * Commits before postgres.js does, whose own COMMIT then ends an empty transaction. That one is prepared: where a pooler has lost it, the
 * server aborts the transaction, and postgres.js sends it again and takes the ROLLBACK for a COMMIT.
 */
async function commit(outer: PostgresJsSender): Promise<void> {
  const result = await outer.unsafe("COMMIT AND CHAIN");
  if (Reflect.get(Object(result), "command") !== "COMMIT") throw rolledBack("fromPostgresJs");
}

/**
 * A savepoint of postgres.js that never ends. `begin` rolls back for any error that one of its statements had, even one undone by ROLLBACK TO;
 * for errors of an inner scope it does only when that ends.
 */
function forgiving<Tx extends PostgresJsTransaction>(outer: Tx): Promise<Tx> {
  return new Promise((resolve, reject) => {
    const onInner = (inner: Tx): Promise<never> => {
      resolve(inner);
      return pending();
    };
    outer.savepoint(onInner).catch(reject);
  });
}

/** Refuses statements after the end: postgres.js would send them in another request's transaction on this connection. */
function guarded<Tx extends PostgresJsTransaction>(tx: Tx, assertOpen: () => void): Tx {
  return new Proxy(tx, {
    apply(target, self, values) {
      assertOpen();
      if (typeof target !== "function") throw new TypeError("fromPostgresJs: needs postgres.js 3");
      return Reflect.apply(target, self, values);
    },
    get(target, name) {
      assertOpen();
      const member: unknown = Reflect.get(target, name);
      if (name !== "savepoint" || typeof member !== "function") return member;
      return (...values: unknown[]) => {
        const guardedValues = values.map((value) =>
          typeof value === "function" ? (inner: Tx) => value(guarded(inner, assertOpen)) : value,
        );
        return Reflect.apply(member, target, guardedValues);
      };
    },
  });
}

/** A new one each time: what awaits it is kept as long as it is. */
function pending(): Promise<never> {
  return new Promise(() => {});
}
