// Over 200 lines: all steps share the private state of one ownership.
import { channels, type PublishedEvents } from "@countersign/core";
import { escapeForLog } from "@countersign/core/internal";
import type { AskedStore, AttemptStore, Retries } from "./attempt-store.ts";
import { Lease, type Heartbeats } from "./lease.ts";
import { alarm } from "./notices.ts";
import { idempotencyLost } from "./refusals.ts";
import type { Awaitable, IdempotencyOwnership } from "./store.ts";

/** The answer when the store has not confirmed a success: the sender has to come again. */
export interface KeyInDoubt {
  readonly status: 503;
  readonly retryAfterSeconds: number;
}

export interface OwnerState extends AskedStore {
  readonly heartbeats: Heartbeats;
  readonly retries: Retries;
  readonly inDoubt: KeyInDoubt;
  /** Owned and not settled. */
  ownedKeys: number;
  draining: boolean;
}

/** A claim that the store has answered. */
export interface ClaimedKey {
  readonly store: AttemptStore;
  /** Taken before the claim was sent, from this process's monotonic clock. */
  readonly claimedAtMs: number;
  /** Called when another attempt may own the key while this one runs. */
  readonly onLost: (() => void) | undefined;
}

/** Owns a key from its claim to the one step that ends it. */
export class OwnedKey {
  readonly fence: number;
  readonly #state: OwnerState;
  readonly #store: AttemptStore;
  readonly #lease: Lease;
  #ended = false;

  private constructor(state: OwnerState, store: AttemptStore, fence: number, lease: Lease) {
    this.fence = fence;
    this.#state = state;
    this.#store = store;
    this.#lease = lease;
  }

  /** Renews the key's lease from here on. */
  static begin(state: OwnerState, { store, claimedAtMs, onLost }: ClaimedKey, fence: number): OwnedKey {
    const lease = new Lease(store, claimedAtMs, onLost);
    state.heartbeats.add(lease);
    state.ownedKeys += 1;
    return new OwnedKey(state, store, fence, lease);
  }

  get status(): "acquired" {
    return "acquired";
  }

  /** Aborts by abort(), and when another attempt may own the key. */
  get signal(): AbortSignal {
    return this.#lease.signal;
  }

  /** Whether this attempt was told that another may own the key. */
  get lost(): boolean {
    return this.#lease.lost;
  }

  /** Aborts the signal, by default as release() does. The key stays owned until settled. */
  abort(reason: Error = idempotencyLost(this.#state.options.retryAfterSeconds)): void {
    this.#lease.abort(reason);
  }

  /**
   * Records `done` after the effect; gives undefined once that is durable, otherwise the sender has to come again. Neither throws nor
   * rejects; repeats a record that the store did not take in the background, with heartbeats, for an hour. `before` runs ahead of the
   * record, under the heartbeats, and must not reject (I15).
   */
  async complete(before?: () => Promise<void>): Promise<KeyInDoubt | undefined> {
    this.#lease.leave();
    await callStackEnd;
    if (before !== undefined) await before();
    try {
      return await this.#completed(await this.#store.complete());
    } catch (error) {
      return this.#checkCompletion(error);
    }
  }

  /** Gives the key back: no effect has happened. Neither throws nor rejects, and repeats itself in the background while a store is down. */
  release(): Promise<void> {
    return this.#leave(() => this.#store.release());
  }

  /** As release(), of a key for which nothing has run: also when its lease has ended and a claim has held it (I13). */
  giveBack(): Promise<void> {
    return this.#leave(() => this.#store.giveBack());
  }

  /** As release(), for an effect that may have happened: an operator decides. The reason has 1 to 256 characters. */
  hold(reason: string): Promise<void> {
    return this.#leave(() => this.#store.hold(reason), reason);
  }

  /** Stops the heartbeat: the key is another attempt's once its lease has ended. complete() may still follow. */
  leaveToLease(): void {
    this.#lease.leave();
    this.abort();
    this.#finished("abandoned");
  }

  /** False when the store does not say. */
  async #isDone(): Promise<boolean> {
    try {
      return await this.#store.isDone();
    } catch {
      return false;
    }
  }

  #completed(ownership: IdempotencyOwnership): Awaitable<KeyInDoubt | undefined> {
    this.#finished(ownership === "ok" ? "done" : "not-owned");
    return ownership === "ok" ? undefined : this.#lostEffect("completion-lost", "ended with success");
  }

  /** Holds the key before the answer, after which a retry may come (I25), if an operator has released it. */
  async #lostEffect(code: string, what: string): Promise<KeyInDoubt> {
    const now = (await this.#takeBack())
      ? "it is held again, an operator had released it"
      : "it belongs to another attempt";
    this.#alarm(code, `${what}: ${now}`);
    return this.#state.inDoubt;
  }

  async #takeBack(): Promise<boolean> {
    // Else a second run does no harm.
    if (this.#state.options.recovery !== "hold") return false;
    const takeBack = (): Promise<boolean> => this.#store.takeBack(this.fence);
    try {
      return await takeBack();
    } catch {
      this.#state.retries.repeatLater(0, () => takeBack().then(() => true));
      return false;
    }
  }

  /** A silent store may have done it. Otherwise asks again while the heartbeat keeps others out (I1). */
  async #checkCompletion(error: unknown): Promise<KeyInDoubt | undefined> {
    if (await this.#isDone()) return this.#completed("ok");
    this.#alarm("completion-delayed", "ended with success, but the store did not record it yet", error);
    this.#state.retries.repeat(
      async () => (await this.#completed(await this.#store.complete()), true),
      () => this.#abandoned(),
    );
    return this.#state.inDoubt;
  }

  async #leave(end: () => Awaitable<IdempotencyOwnership>, holdReason?: string): Promise<void> {
    this.#lease.leave();
    // I11, in the turn of the answer and before another attempt can begin: the handler may still be at work.
    this.abort();
    await callStackEnd;
    const step = async (): Promise<true> => this.#left(await end(), holdReason);
    try {
      await step();
    } catch {
      // The heartbeat goes on: the key must be neither held for its lease (I3) nor, if its effect may have happened, taken over (I1).
      this.#state.retries.repeat(step, () => this.#abandoned());
    }
  }

  async #left(ownership: IdempotencyOwnership, holdReason: string | undefined): Promise<true> {
    const left = holdReason === undefined ? "released" : "held";
    this.#finished(ownership === "ok" ? left : "not-owned");
    if (ownership !== "ok" && holdReason !== undefined) {
      await this.#lostEffect("hold-lost", `could not be held (${holdReason})`);
    }
    return true;
  }

  #finished(outcome: PublishedEvents["settled"]["outcome"]): void {
    if (this.#ended) return;
    this.#ended = true;
    if (channels.settled.hasSubscribers) this.#publishSettled(outcome);
    this.#state.ownedKeys -= 1;
    this.#state.heartbeats.remove(this.#lease);
    this.#state.options.onSettled?.(this.#store.attempt.key);
  }

  #publishSettled(outcome: PublishedEvents["settled"]["outcome"]): void {
    const { key, req } = this.#store.attempt;
    const ownedMs = performance.now() - this.#lease.claimedAtMs;
    const guard = this.#state.options.factory;
    const event: PublishedEvents["settled"] = { guard, key: escapeForLog(key, 256), outcome, ownedMs, req };
    channels.settled.publish(event);
  }

  #abandoned(): void {
    this.#finished("abandoned");
    this.#alarm("settlement-abandoned", "could not be settled for an hour; recovery decides about it");
  }

  #alarm(code: string, message: string, error?: unknown): void {
    const { key, req } = this.#store.attempt;
    alarm(this.#state.options.factory, { code, key, message, req, error });
  }
}

// A handler may end its key inside a transaction that commits when the call stack returns. On that transaction's connection the store
// would see, or join, what is not committed: I4 needs each step of the end from outside.
const callStackEnd: Promise<void> = Promise.resolve();
