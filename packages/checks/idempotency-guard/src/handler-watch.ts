import { createWarnOnce } from "@countersign/core/door";
import type { TransactionStores } from "@countersign/idempotency";

const unused =
  "a handler has ended without taking tx: whatever it wrote has committed without the key, and can be written again after a crash; " +
  "write it by tx";
const unwritten =
  "a handler has ended without writing a row by tx, and its caller was told of a success: look for a missing await or execute(), or for " +
  "what another connection wrote";

// Of those that write nothing, most never do; the first that writes ends it.
const mostCounted = 10;

/** Notices, once, that what a handler wrote is not in its transaction. */
export class HandlerWatch<Tx> {
  readonly #warnOnce: ReturnType<typeof createWarnOnce>;
  readonly #mayMiss: boolean;
  #left = mostCounted;

  constructor(factoryName: string, { transactions }: TransactionStores<Tx>) {
    this.#warnOnce = createWarnOnce(factoryName);
    // SQLite has one connection: what is written there is in the transaction.
    this.#mayMiss = transactions.mode === "async";
  }

  begin(): WatchedHandler<Tx> {
    const isCounted = this.#left > 0;
    if (isCounted) this.#left -= 1;
    let isTaken = false;
    let isIdle = false;
    return {
      contextOf: (tx) => ({
        get tx() {
          isTaken = true;
          return tx;
        },
      }),
      tell: !isCounted
        ? undefined
        : (hasWritten) => {
            isIdle = !hasWritten;
            if (hasWritten) this.#left = 0;
          },
      committed: (req) => {
        const message = this.#mayMiss && !isTaken ? unused : isIdle ? unwritten : undefined;
        if (message !== undefined) this.#warnOnce({ code: "transaction-unused", message, req });
      },
    };
  }
}

export interface WatchedHandler<Tx> {
  /** What the handler is given: a look at `tx` is noticed. */
  readonly contextOf: (tx: Tx) => { readonly tx: Tx };
  /** Whether it has written a row. Undefined for a handler whose rows are not counted. */
  readonly tell: ((hasWritten: boolean) => void) | undefined;
  readonly committed: (req: object) => void;
}
