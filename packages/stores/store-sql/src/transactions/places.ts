import type { Database, TransactionTurn } from "@countersign/idempotency";

/**
 * Bounds how many transactions are open at once on one pool; the others wait in the order in which they came. A handler that also reads by the
 * pool, as by a repository, waits for a connection while its transaction has one: if all connections had transactions, all would wait.
 */
export class Places {
  readonly most: number;
  /** Of transactions for which no request waits, such as tasks: a backlog of them leaves requests a quarter of the places. */
  readonly #mostInBackground: number;
  #taken = 0;
  #takenInBackground = 0;
  readonly #requests: (() => void)[] = [];
  readonly #background: (() => void)[] = [];

  constructor(most: number) {
    this.most = most;
    this.#mostInBackground = Math.max(1, most - Math.ceil(most / 4));
  }

  /** True if a further transaction of a request waits for the end of another. */
  get areTaken(): boolean {
    return this.#taken >= this.most;
  }

  async within<T>(
    { isBackground = false, isGivenUp }: TransactionTurn,
    transaction: () => Promise<T>,
  ): Promise<T> {
    await new Promise<void>((resolve) => {
      (isBackground ? this.#background : this.#requests).push(resolve);
      this.#fill();
    });
    try {
      // Requests that were answered while they waited must not delay those that still wait.
      if (isGivenUp?.() === true)
        throw new Error("nobody waits for the transaction any more: it was not opened");
      return await transaction();
    } finally {
      this.#taken -= 1;
      if (isBackground) this.#takenInBackground -= 1;
      this.#fill();
    }
  }

  #fill(): void {
    while (!this.areTaken) {
      const request = this.#requests.shift();
      const isFree = request === undefined && this.#takenInBackground < this.#mostInBackground;
      const background = isFree ? this.#background.shift() : undefined;
      const begin = request ?? background;
      if (begin === undefined) return;
      this.#taken += 1;
      if (begin === background) this.#takenInBackground += 1;
      begin();
    }
  }
}

const placesOfPools = new WeakMap<object, Places>();

/** The places of a pool, which all of its stores share: four fifths of its connections. Without a bound where the library does not tell them. */
export function placesOf({ pool }: Pick<Database<never>, "pool">): Places | undefined {
  const known = pool?.();
  if (known === undefined) return undefined;
  const shared = placesOfPools.get(known.of);
  if (shared !== undefined) return shared;
  const places = new Places(Math.max(1, known.size - Math.ceil(known.size / 5)));
  placesOfPools.set(known.of, places);
  return places;
}
