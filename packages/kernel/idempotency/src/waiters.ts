import { traces, type PublishedEvents } from "@countersign/core";
import { escapeForLog, traced } from "@countersign/core/internal";
import { recordReader } from "./attempt-store.ts";
import type { IdempotencyRecord, IdempotencyStore } from "./store.ts";

export interface WaitersOptions {
  /** The receiver's name in traces. Default `waiters`. */
  readonly factory?: string | undefined;
  readonly store: IdempotencyStore;
  /** The longest wait for one look, in milliseconds. */
  readonly storeTimeoutMs: number;
  /** How often to look at a key, in milliseconds. */
  readonly pollMs: number;
  readonly maxWaiters: number;
}

/** Why a wait ends: the key is decided, this waiter may claim, time is up, or the client has left. */
export type WaitOutcome =
  | Extract<IdempotencyRecord, { readonly state: "done" | "held" }>
  | "claim"
  | "timeout"
  | "client-left";

interface TracedWait<T> {
  readonly guard: string;
  readonly key: string;
  readonly work: () => Promise<T>;
  readonly outcomeOf: (ended: T) => string;
}

/** A duplicate's wait as one trace of the key. Costs nothing without subscribers. */
export async function tracedWait<T>({ guard, key, work, outcomeOf }: TracedWait<T>): Promise<T> {
  if (!traces.wait.hasSubscribers) return await work();
  const context: PublishedEvents["wait"] = { guard, key: escapeForLog(key, 256) };
  return await traced(traces.wait, context, { work, outcomeOf });
}

interface Waiter {
  readonly end: (outcome: WaitOutcome) => void;
}

interface Room {
  readonly waiters: Set<Waiter>;
  timer: NodeJS.Timeout | undefined;
  reading: boolean;
  readAgain: boolean;
}

/**
 * Duplicates that wait for their key's owner. One reader serves each key, and looks at once when the owner settles in this
 * process. A freed key wakes one waiter, so that they do not all claim at once.
 */
export class Waiters {
  readonly #options: WaitersOptions;
  readonly #recordOf: ReturnType<typeof recordReader>;
  readonly #rooms = new Map<string, Room>();
  #count = 0;

  constructor(options: WaitersOptions) {
    this.#options = options;
    this.#recordOf = recordReader(options);
  }

  /** Waits for at most `timeoutMs`; `timeout` at once without room. `left` aborts when the client leaves. */
  async wait(key: string, left: AbortSignal, timeoutMs: number): Promise<WaitOutcome> {
    if (left.aborted) return "client-left";
    if (timeoutMs <= 0 || this.#count >= this.#options.maxWaiters) return "timeout";
    const work = (): Promise<WaitOutcome> =>
      new Promise((resolve) => this.#enter(key, left, timeoutMs, resolve));
    const outcomeOf = (ended: WaitOutcome): string => (typeof ended === "string" ? ended : ended.state);
    return await tracedWait({ guard: this.#options.factory ?? "waiters", key, work, outcomeOf });
  }

  /** Tells waiters of a change to the key in this process. */
  wake(key: string): void {
    if (this.#rooms.size === 0) return;
    const room = this.#rooms.get(key);
    if (room !== undefined) void this.#read(key, room);
  }

  #enter(key: string, left: AbortSignal, timeoutMs: number, resolve: (outcome: WaitOutcome) => void): void {
    const room = this.#room(key);
    const onLeft = (): void => waiter.end("client-left");
    const timer = setTimeout(() => waiter.end("timeout"), timeoutMs).unref();
    const waiter: Waiter = {
      end: (outcome) => {
        if (!room.waiters.delete(waiter)) return;
        this.#count -= 1;
        clearTimeout(timer);
        left.removeEventListener("abort", onLeft);
        if (room.waiters.size === 0) {
          clearTimeout(room.timer);
          this.#rooms.delete(key);
        }
        resolve(outcome);
      },
    };
    room.waiters.add(waiter);
    this.#count += 1;
    left.addEventListener("abort", onLeft);
  }

  #room(key: string): Room {
    let room = this.#rooms.get(key);
    if (room === undefined) {
      room = { waiters: new Set(), timer: undefined, reading: false, readAgain: false };
      this.#rooms.set(key, room);
      this.#schedule(key, room);
    }
    return room;
  }

  #schedule(key: string, room: Room): void {
    clearTimeout(room.timer);
    room.timer = setTimeout(() => void this.#read(key, room), this.#options.pollMs).unref();
  }

  async #read(key: string, room: Room): Promise<void> {
    if (room.reading) {
      // The read under way may be older than the wake.
      room.readAgain = true;
      return;
    }
    room.reading = true;
    try {
      this.#wake(room, await this.#recordOf(key));
    } catch {
      // The waiters' own time-outs end in 503 while the store is away.
    }
    room.reading = false;
    if (room.waiters.size === 0) return;
    if (room.readAgain) {
      room.readAgain = false;
      void this.#read(key, room);
    } else this.#schedule(key, room);
  }

  #wake(room: Room, record: IdempotencyRecord | undefined): void {
    if (record?.state === "done" || record?.state === "held") {
      for (const waiter of room.waiters) waiter.end(record);
    } else if (record === undefined || record.remainingMs <= 0) {
      const [first] = room.waiters;
      first?.end("claim");
    }
  }
}
