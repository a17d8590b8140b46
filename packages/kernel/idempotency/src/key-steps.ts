import { inTime, storeTrace } from "@countersign/core";
import type { KeyAttempt } from "./key-attempt.ts";
import type { ResolvedKeyOptions } from "./key-options.ts";
import { ObservedStore, type StoreSteps } from "./observed-store.ts";
import type { Awaitable, IdempotencyOwnership, IdempotencyRecord, IdempotencyStore } from "./store.ts";

/** A store, and how long one call of it may take, in milliseconds. */
interface TimedStore {
  readonly store: IdempotencyStore<unknown>;
  readonly storeTimeoutMs: number;
}

/** The store for one step: as it is, or observed while somebody subscribes to `countersign:store`. */
export function storeOf({ store, storeTimeoutMs }: TimedStore): StoreSteps<unknown> {
  return storeTrace.hasSubscribers ? new ObservedStore(store, storeTimeoutMs) : store;
}

/**
 * The store's answer, or an error when it is not there after `timeoutMs`. To be awaited where the store is called, so that its throw
 * is a rejection; no function of its own around the call, because on Node 20 each promise more is paid for.
 */
export function inStoreTime<T>(answer: Awaitable<T>, timeoutMs: number): Awaitable<T> {
  return inTime(
    answer,
    timeoutMs,
    () => new Error(`the idempotency store did not answer within ${timeoutMs} ms`),
  );
}

/** What the store knows of a key. Undefined when it is absent, also where a store of somebody's own says null for that. */
export async function readRecord(options: TimedStore, key: string): Promise<IdempotencyRecord | undefined> {
  return (await inStoreTime(storeOf(options).read(key), options.storeTimeoutMs)) ?? undefined;
}

// On the record, so that nobody takes it for a person's decision.
const neverRan = { by: "countersign", note: "given back: its handler never ran" };

/** What one attempt asks of the store, to be awaited where it is called. Each fails when the store throws, rejects or is too slow. */
export class KeySteps {
  readonly #options: ResolvedKeyOptions;
  readonly #attempt: KeyAttempt;

  constructor(options: ResolvedKeyOptions, attempt: KeyAttempt) {
    this.#options = options;
    this.#attempt = attempt;
  }

  read(): Promise<IdempotencyRecord | undefined> {
    return readRecord(this.#options, this.#attempt.key);
  }

  complete(): Awaitable<IdempotencyOwnership> {
    const answer = storeOf(this.#options).complete(this.#attempt.key, this.#attempt.token);
    return inStoreTime(answer, this.#options.storeTimeoutMs);
  }

  release(): Awaitable<IdempotencyOwnership> {
    const answer = storeOf(this.#options).release(this.#attempt.key, this.#attempt.token);
    return inStoreTime(answer, this.#options.storeTimeoutMs);
  }

  /** `ok` also when it was held by an earlier call, whose answer was lost or late. */
  async hold(reason: string): Promise<IdempotencyOwnership> {
    const { key, token } = this.#attempt;
    const answer = storeOf(this.#options).hold(key, token, reason);
    if ((await inStoreTime(answer, this.#options.storeTimeoutMs)) === "ok") return "ok";
    return this.isOwn(await this.read(), "held") ? "ok" : "lost";
  }

  /** Whether the store has this attempt's own durable record, read from outside of any transaction. */
  async isDone(): Promise<boolean> {
    return this.isOwn(await this.read(), "done");
  }

  /** Frees a key of which nothing has run (I13), also where its lease has ended meanwhile and a claim has held it. */
  async giveBack(): Promise<IdempotencyOwnership> {
    const { key } = this.#attempt;
    if ((await this.release()) === "ok") return "ok";
    const record = await this.read();
    if (record === undefined || !this.isOwn(record, "held")) return "lost";
    const { fence } = record;
    const answer = storeOf(this.#options).resolve(key, "released", { fence, ...neverRan });
    const resolved = await inStoreTime(answer, this.#options.storeTimeoutMs);
    return resolved === "ok" ? "ok" : "lost";
  }

  isOwn(record: IdempotencyRecord | undefined, state: IdempotencyRecord["state"]): boolean {
    return record?.state === state && record.token === this.#attempt.token;
  }
}

const firstDelayMs = 100;
const longestDelayMs = 10_000;
const giveUpAfterMs = 3_600_000;

/**
 * How many claims may be under way or wait to be given back. A store that is down for all requests must not make the process collect
 * them, and a claim that nobody could give back must not be sent: its key would wait for an operator although nothing ran (I13).
 */
const maxClaims = 2_000;

/** Steps that a store refused and that are repeated in the background. Its timers keep no process alive. */
export class Retries {
  readonly #tasks = new Set<Task>();
  #claims = 0;

  /** How many claims are under way or wait to be given back. */
  get claims(): number {
    return this.#claims;
  }

  /** Takes a place for a claim that is about to be sent; false when there is none. */
  reserveClaim(): boolean {
    if (this.#claims >= maxClaims) return false;
    this.#claims += 1;
    return true;
  }

  /** Gives back the place of a claim that was answered. */
  claimAnswered(): void {
    this.#claims -= 1;
  }

  /** Repeats `step` until it returns true, with growing pauses; calls `abandoned` after an hour. */
  repeat(step: () => Awaitable<boolean>, abandoned: () => void): void {
    const giveUpAt = performance.now() + giveUpAfterMs;
    const onFailure = (): boolean => {
      if (performance.now() < giveUpAt) return true;
      abandoned();
      return false;
    };
    this.#start(step, onFailure).pause();
  }

  /** As repeat(), from `delayMs` on, and in silence. */
  repeatLater(delayMs: number, step: () => Awaitable<boolean>): void {
    setTimeout(() => this.repeat(step, () => {}), delayMs).unref();
  }

  /**
   * Gives a claim back, beginning at once: repeats `step` until it returns true, for as long as the process lives, and keeps the
   * place of the claim until then. No pause is longer than `longestPauseMs`, and none than ten seconds.
   */
  giveBackClaim(longestPauseMs: number, step: () => Awaitable<boolean>): void {
    const counted = async (): Promise<boolean> => {
      const done = await step();
      if (done) this.claimAnswered();
      return done;
    };
    this.#start(counted, () => true, longestPauseMs).hurry();
  }

  /** Runs what waits for its next attempt now. */
  hurry(): void {
    for (const task of this.#tasks) task.hurry();
  }

  #start(step: () => Awaitable<boolean>, onFailure: () => boolean, longestPauseMs = longestDelayMs): Task {
    const work = async (): Promise<boolean> => {
      const ended = (await succeeds(step)) || !onFailure();
      if (ended) this.#tasks.delete(task);
      return ended;
    };
    const task = new Task(work, Math.min(longestPauseMs, longestDelayMs));
    this.#tasks.add(task);
    return task;
  }
}

/** One step that is attempted until it has ended. */
class Task {
  readonly #attempt: () => Promise<boolean>;
  readonly #longestDelayMs: number;
  #delayMs = firstDelayMs;
  #timer: NodeJS.Timeout | undefined;
  #running = false;

  constructor(attempt: () => Promise<boolean>, longestMs: number) {
    this.#attempt = attempt;
    this.#longestDelayMs = longestMs;
  }

  pause(): void {
    this.#timer = setTimeout(() => this.hurry(), this.#delayMs).unref();
    this.#delayMs = Math.min(this.#delayMs * 2, this.#longestDelayMs);
  }

  /** Attempts the step now, unless it is being attempted. */
  hurry(): void {
    if (this.#running) return;
    clearTimeout(this.#timer);
    void this.#run();
  }

  async #run(): Promise<void> {
    this.#running = true;
    const ended = await this.#attempt();
    this.#running = false;
    if (!ended) this.pause();
  }
}

async function succeeds(step: () => Awaitable<boolean>): Promise<boolean> {
  try {
    return await step();
  } catch {
    return false;
  }
}
