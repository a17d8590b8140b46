import { traces, type PublishedEvents } from "@countersign/core";
import { escapeForLog, traced } from "@countersign/core/internal";
import type { IdempotencyClaimResult, IdempotencyRecord } from "./store.ts";

/** Does `work` with a signal that aborts when the client leaves, or has left. */
export type WhileConnected = <T>(work: (left: AbortSignal) => Promise<T>) => Promise<T>;

/** A key that no attempt can have before something is decided about it, or ever. */
export type DecidedKey = Extract<IdempotencyClaimResult, { readonly status: "done" | "held" }>;

/** The turn of one attempt at a key. */
export interface Turn {
  /** Lets the next attempt have its turn; with a decided key, tells all that wait what was decided. Only the first call counts. */
  leave(this: void, decided?: DecidedKey): void;
}

/** Why an attempt does not get its turn. */
type Waited = DecidedKey | "timeout" | "client-left";

interface Waiter {
  readonly end: (how: Turn | DecidedKey) => void;
}

/** Where the attempts at one key are. */
interface Place {
  readonly waiters: Waiter[];
  /** Looks at the key now. There while the attempt whose turn it is waits for another process. */
  look?: (() => void) | undefined;
}

/** How the attempt whose turn it is looks at a key that another process has. */
export interface LooksAtKey {
  /** How long the attempt waits in all, in milliseconds. */
  readonly waitMs: number;
  /** The time between two looks, in milliseconds. */
  readonly pollMs: number;
  readonly read: () => Promise<IdempotencyRecord | undefined>;
}

/**
 * Where duplicates wait: one attempt at a key at a time has its turn in this process, and the others wait here, without a connection and
 * without a call of the store.
 */
export class WaitingRoom {
  readonly #factory: string;
  readonly #maxWaiters: number;
  readonly #places = new Map<string, Place>();
  #waiting = 0;

  /** `factory`: the receiver's name in traces. `maxWaiters`: how many may wait at once, for all keys together. */
  constructor(factory: string, maxWaiters: number) {
    this.#factory = factory;
    this.#maxWaiters = maxWaiters;
  }

  /**
   * Gives the turn at once where nobody has it. Else waits for it at most `waitMs`; without room that ends as `timeout` at once. Turns come
   * in the order of arrival.
   */
  enter(key: string, waitMs: number, whileConnected: WhileConnected): Turn | Promise<Turn | Waited> {
    const place = this.#places.get(key);
    if (place !== undefined) {
      return this.#traced(key, waitMs, (left) => waitIn(place, waitMs, left), whileConnected);
    }
    const own: Place = { waiters: [] };
    this.#places.set(key, own);
    return this.#turnIn(key, own);
  }

  /**
   * For the attempt whose turn it is, at a key that another process has: looks at the record until it is decided, or free to be claimed. A
   * look that fails is no answer.
   */
  async untilDecided(
    key: string,
    looks: LooksAtKey,
    whileConnected: WhileConnected,
  ): Promise<Waited | "claim"> {
    const place = this.#places.get(key) ?? { waiters: [] };
    return this.#traced(key, looks.waitMs, (left) => lookIn(place, looks, left), whileConnected);
  }

  /** Tells whoever looks at the key that this process has changed it. */
  wake(key: string): void {
    if (this.#places.size > 0) this.#places.get(key)?.look?.();
  }

  /** One wait, within the room's bound, as one trace of the key. Costs nothing without subscribers. */
  async #traced<How extends Turn | Waited | "claim">(
    key: string,
    waitMs: number,
    wait: (left: AbortSignal) => Promise<How>,
    whileConnected: WhileConnected,
  ): Promise<How | "timeout"> {
    if (waitMs <= 0 || this.#waiting >= this.#maxWaiters) return "timeout";
    this.#waiting += 1;
    try {
      if (!traces.wait.hasSubscribers) return await whileConnected(wait);
      const context: PublishedEvents["wait"] = { guard: this.#factory, key: escapeForLog(key, 256) };
      return await traced(traces.wait, context, { work: () => whileConnected(wait), outcomeOf: nameOf });
    } finally {
      this.#waiting -= 1;
    }
  }

  #turnIn(key: string, place: Place): Turn {
    let isOver = false;
    return {
      leave: (decided) => {
        if (isOver) return;
        isOver = true;
        if (decided !== undefined) for (const waiter of place.waiters.splice(0)) waiter.end(decided);
        const next = place.waiters.shift();
        if (next === undefined) this.#places.delete(key);
        else next.end(this.#turnIn(key, place));
      },
    };
  }
}

function nameOf(how: Turn | Waited | "claim"): string {
  if (typeof how === "string") return how;
  return "status" in how ? how.status : "claim";
}

export function isTurn(how: Turn | Waited): how is Turn {
  return typeof how === "object" && "leave" in how;
}

function waitIn(place: Place, waitMs: number, left: AbortSignal): Promise<Turn | Waited> {
  if (left.aborted) return Promise.resolve("client-left");
  return new Promise((resolve) => {
    const end = (how: Turn | Waited): void => {
      clearTimeout(timer);
      left.removeEventListener("abort", onLeft);
      const position = place.waiters.indexOf(waiter);
      if (position >= 0) place.waiters.splice(position, 1);
      resolve(how);
    };
    const waiter: Waiter = { end };
    const onLeft = (): void => end("client-left");
    const timer = setTimeout(() => end("timeout"), waitMs).unref();
    left.addEventListener("abort", onLeft);
    place.waiters.push(waiter);
  });
}

function lookIn(
  place: Place,
  { waitMs, pollMs, read }: LooksAtKey,
  left: AbortSignal,
): Promise<Waited | "claim"> {
  if (left.aborted) return Promise.resolve("client-left");
  return new Promise((resolve) => {
    let isEnded = false;
    let isReading = false;
    let readsAgain = false;
    const end = (how: Waited | "claim"): void => {
      isEnded = true;
      clearTimeout(late);
      clearTimeout(next);
      left.removeEventListener("abort", onLeft);
      place.look = undefined;
      resolve(how);
    };
    const look = async (): Promise<void> => {
      // A look under way may be older than what this one is asked for.
      readsAgain = isReading;
      if (isReading) return;
      isReading = true;
      clearTimeout(next);
      const how = await judged(read);
      isReading = false;
      if (isEnded) return;
      if (how !== undefined) end(how);
      else if (readsAgain) void look();
      else next = setTimeout(look, pollMs).unref();
    };
    const onLeft = (): void => end("client-left");
    const late = setTimeout(() => end("timeout"), waitMs).unref();
    let next = setTimeout(look, pollMs).unref();
    left.addEventListener("abort", onLeft);
    place.look = () => void look();
  });
}

/** What a look at the key says; undefined while its owner may be at work, and where the store has failed. */
async function judged(read: LooksAtKey["read"]): Promise<DecidedKey | "claim" | undefined> {
  let record: IdempotencyRecord | undefined;
  try {
    // Databases say null for what they do not have.
    record = (await read()) ?? undefined;
  } catch {
    return undefined;
  }
  if (record?.state === "done") return { status: "done", fingerprint: record.fingerprint };
  if (record?.state === "held") {
    return { status: "held", fingerprint: record.fingerprint, reason: record.reason };
  }
  return record === undefined || record.remainingMs <= 0 ? "claim" : undefined;
}
