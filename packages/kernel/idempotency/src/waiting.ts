import { traces, type PublishedEvents } from "@countersign/core";
import { escapeForLog, traced } from "@countersign/core/internal";
import type { IdempotencyClaimResult, IdempotencyRecord } from "./store.ts";

/** Does `work` with a signal that aborts when the client leaves, or has left. */
export type WhileConnected = <T>(work: (left: AbortSignal) => Promise<T>) => Promise<T>;

/** A key that no attempt can have before something is decided about it, or ever. */
export type DecidedKey = Extract<IdempotencyClaimResult, { readonly status: "done" | "held" }>;

/** The turn of one attempt at a key. */
export interface Turn {
  /**
   * Lets the next attempt have its turn; with a decided key, tells all that wait what was decided. Lease mode gives one; in transaction mode
   * the next attempt learns it from its claim. Only the first call counts.
   */
  leave(this: void, decided?: DecidedKey): void;
}

/** Why an attempt does not get its turn. */
type Waited = DecidedKey | "timeout" | "client-left";

interface Waiter {
  readonly end: (how: Turn | DecidedKey) => void;
}

/** The attempts that wait for one key. There as long as one of them has its turn. */
interface KeyQueue {
  readonly waiters: Waiter[];
  /** Reads the key now. Set while the attempt whose turn it is waits for another process. */
  pollNow?: (() => void) | undefined;
}

/** How the attempt whose turn it is waits for a key that another process has. */
export interface PollOptions {
  /** How long the attempt waits in all, in milliseconds. */
  readonly waitMs: number;
  /** The time between two readings, in milliseconds. */
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
  readonly #queues = new Map<string, KeyQueue>();
  #waiting = 0;

  /** `factory`: the receiver's name in traces. `maxWaiters`: how many may wait at once, for all keys together. */
  constructor(factory: string, maxWaiters: number) {
    this.#factory = factory;
    this.#maxWaiters = maxWaiters;
  }

  /**
   * Gives the turn at once where nobody has it. Else waits for it at most `waitMs`, or not at all where `maxWaiters` attempts wait already.
   * Turns come in the order of arrival.
   */
  enter(key: string, waitMs: number, whileConnected: WhileConnected): Turn | Promise<Turn | Waited> {
    if (!this.#queues.has(key)) return this.#firstTurn(key);
    return this.#traced(key, waitMs, (left) => this.#wait(key, waitMs, left), whileConnected);
  }

  async #wait(key: string, waitMs: number, left: AbortSignal): Promise<Turn | Waited> {
    const queue = this.#queues.get(key);
    return queue === undefined ? this.#firstTurn(key) : waitIn(queue, waitMs, left);
  }

  #firstTurn(key: string): Turn {
    const queue: KeyQueue = { waiters: [] };
    this.#queues.set(key, queue);
    return this.#turnIn(key, queue);
  }

  /**
   * For the attempt whose turn it is, at a key that another process has: reads the record until it is decided, or free to be claimed. If a
   * reading fails, the attempt reads again after `pollMs`.
   */
  async untilDecided(
    key: string,
    options: PollOptions,
    whileConnected: WhileConnected,
  ): Promise<Waited | "claim"> {
    const queue = this.#queues.get(key) ?? { waiters: [] };
    return this.#traced(
      key,
      options.waitMs,
      (left) => pollUntilDecided(queue, options, left),
      whileConnected,
    );
  }

  /** Tells the attempt that waits for another process that this process has changed the key. */
  wake(key: string): void {
    if (this.#queues.size > 0) this.#queues.get(key)?.pollNow?.();
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

  #turnIn(key: string, queue: KeyQueue): Turn {
    let isOver = false;
    return {
      leave: (decided) => {
        if (isOver) return;
        isOver = true;
        if (decided !== undefined) for (const waiter of queue.waiters.splice(0)) waiter.end(decided);
        const next = queue.waiters.shift();
        if (next === undefined) this.#queues.delete(key);
        else next.end(this.#turnIn(key, queue));
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

function waitIn(queue: KeyQueue, waitMs: number, left: AbortSignal): Promise<Turn | Waited> {
  if (left.aborted) return Promise.resolve("client-left");
  return new Promise((resolve) => {
    const end = (how: Turn | Waited): void => {
      clearTimeout(timer);
      left.removeEventListener("abort", onLeft);
      const position = queue.waiters.indexOf(waiter);
      if (position >= 0) queue.waiters.splice(position, 1);
      resolve(how);
    };
    const waiter: Waiter = { end };
    const onLeft = (): void => end("client-left");
    const timer = setTimeout(() => end("timeout"), waitMs).unref();
    left.addEventListener("abort", onLeft);
    queue.waiters.push(waiter);
  });
}

function pollUntilDecided(
  queue: KeyQueue,
  { waitMs, pollMs, read }: PollOptions,
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
      queue.pollNow = undefined;
      resolve(how);
    };
    const poll = async (): Promise<void> => {
      // A reading under way may be older than what this one is asked for.
      readsAgain = isReading;
      if (isReading) return;
      isReading = true;
      clearTimeout(next);
      const how = await decisionOf(read);
      isReading = false;
      if (isEnded) return;
      if (how !== undefined) end(how);
      else if (readsAgain) void poll();
      else next = setTimeout(poll, pollMs).unref();
    };
    const onLeft = (): void => end("client-left");
    const late = setTimeout(() => end("timeout"), waitMs).unref();
    let next = setTimeout(poll, pollMs).unref();
    left.addEventListener("abort", onLeft);
    queue.pollNow = () => void poll();
  });
}

/** What the record says of the key; undefined while its owner may be at work, and where the store has failed. */
async function decisionOf(read: PollOptions["read"]): Promise<DecidedKey | "claim" | undefined> {
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
