type Opener<Tx> = (work: (tx: Tx) => Promise<void>) => Promise<unknown>;

/** Runs `work` in a transaction of the library. Rejects with the error of `work` itself, even if the rollback fails too. */
export async function inTransaction<Tx, T>(open: Opener<Tx>, work: (tx: Tx) => Promise<T>): Promise<T> {
  const begun: Promise<T>[] = [];
  try {
    await open(async (tx) => {
      const running = work(tx);
      begun.push(running);
      await running;
    });
  } catch (error) {
    await Promise.all(begun);
    throw error;
  }
  const [done] = begun;
  if (done === undefined) throw new Error("the library has committed without running the work");
  return done;
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
    const value = (): never => {
      throw new Error(
        `${caller}: ${name}() is not the handler's: it commits when it returns, and rolls back when it throws`,
      );
    };
    Object.defineProperty(tx, name, { value, configurable: true, writable: true });
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

/** Refuses a statement that comes after the end: as the library tells of errors, for a throw would end the process out of a timer. */
export function late(error: Error, values: readonly unknown[]): Promise<never> {
  if (values.some((value) => typeof value === "function")) throw error;
  return Promise.reject(error);
}

/**
 * For a COMMIT that PostgreSQL answered with ROLLBACK, as it does, without an error, when a statement failed and the work went on: nothing
 * was written. Has the SQLSTATE of statements in such a transaction.
 */
export function rolledBack(caller: string): Error {
  const message = `${caller}: the transaction was rolled back, because a statement in it had failed; let its error through`;
  return Object.assign(new Error(message), { code: "25P02" });
}
