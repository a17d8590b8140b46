import { waitTrace, type WaitTrace } from "@countersign/core";
import { escapeForLog, traced } from "@countersign/core/door";
import { readRecord, readStepOf } from "./attempt-store.ts";
import type { IdempotencyRecord, IdempotencyStore } from "./store.ts";

/** Options of {@link Waiters}. */
export interface WaitersOptions {
  /** The name of the receiver, for traces. Default `waiters`. */
  readonly factory?: string | undefined;
  readonly store: IdempotencyStore<unknown>;
  /** How long one look may take, in milliseconds. */
  readonly storeTimeoutMs: number;
  /** How often a key is looked at, in milliseconds. */
  readonly pollMs: number;
  /** How many may wait at the same time. */
  readonly maxWaiters: number;
}

/** What ends a wait: the key is decided, it is this waiter's turn to claim, time is up, or the client has left. */
export type WaitOutcome =
  | Extract<IdempotencyRecord, { readonly state: "done" | "held" }>
  | "claim"
  | "timeout"
  | "client-left";

interface Waiter {
  readonly end: (outcome: WaitOutcome) => void;
}

interface Room {
  /** In the order of arrival. */
  readonly waiters: Set<Waiter>;
  timer: NodeJS.Timeout | undefined;
  reading: boolean;
  readAgain: boolean;
}

/**
 * Duplicates that wait for the owner of their key. All waiters of one key share one reader, which looks at once when the
 * owner settles in this process. A freed key wakes one waiter, so that not all of them claim at the same time.
 */
export class Waiters {
  readonly #options: WaitersOptions;
  readonly #readStep: ReturnType<typeof readStepOf>;
  readonly #rooms = new Map<string, Room>();
  #count = 0;

  constructor(options: WaitersOptions) {
    this.#options = options;
    this.#readStep = readStepOf(options);
  }

  /** Waits for at most `timeoutMs`; `timeout` at once when there is no room. `left` aborts when the client leaves. */
  async wait(key: string, left: AbortSignal, timeoutMs: number): Promise<WaitOutcome> {
    if (left.aborted) return "client-left";
    if (timeoutMs <= 0 || this.#count >= this.#options.maxWaiters) return "timeout";
    const work = (): Promise<WaitOutcome> =>
      new Promise((resolve) => this.#enter(key, left, timeoutMs, resolve));
    if (!waitTrace.hasSubscribers) return await work();
    const context: WaitTrace = { guard: this.#options.factory ?? "waiters", key: escapeForLog(key, 256) };
    const outcomeOf = (ended: WaitOutcome): string => (typeof ended === "string" ? ended : ended.state);
    return await traced(waitTrace, context, { work, outcomeOf });
  }

  /** Something happened to the key in this process. */
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
      // What is being read may be older than what woke us.
      room.readAgain = true;
      return;
    }
    room.reading = true;
    try {
      this.#wake(room, await readRecord(this.#options.store, this.#readStep, key));
    } catch {
      // The waiters' own time runs: a store that stays away ends in 503.
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
