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
 * For a COMMIT that PostgreSQL answered with ROLLBACK, as it does, without an error, when a statement failed and the work went on: nothing
 * was written. Has the SQLSTATE of statements in such a transaction.
 */
export function rolledBack(caller: string): Error {
  const message = `${caller}: the transaction was rolled back, because a statement in it had failed; let its error through`;
  return Object.assign(new Error(message), { code: "25P02" });
}
