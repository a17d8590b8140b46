import { isPromiseLike } from "@countersign/guard";
import type { Attempt, GuardState } from "./attempt.ts";
import { callStore } from "./call-store.ts";
import type { Lease } from "./lease.ts";
import { alarm } from "./notices.ts";
import type { Intent } from "./request-idempotency.ts";
import type { Replacement } from "./response-head.ts";
import type { Awaitable, IdempotencyOwnership, IdempotencyRecord } from "./store.ts";

/** The verdict on the handler's answer; undefined lets it out. */
type Verdict = Replacement | undefined;

/** One handler's ownership of its key: from the claim to the one step that ends it. */
export class Run {
  readonly #state: GuardState;
  readonly #attempt: Attempt;
  readonly #lease: Lease;
  readonly #intent: Intent;

  constructor(state: GuardState, attempt: Attempt, lease: Lease, intent: Intent) {
    this.#state = state;
    this.#attempt = attempt;
    this.#lease = lease;
    this.#intent = intent;
  }

  /** Settles the key by the handler's answer. Neither throws nor rejects. */
  settle(status: number): Awaitable<Verdict> {
    this.#intent.responseEnded = true;
    this.#lease.settle();
    return this.#intent.inTransaction ? this.#settleAfterTransaction(status) : this.#settleNow(status);
  }

  #settleNow(status: number): Awaitable<Verdict> {
    // An explicit success outweighs an earlier hold().
    if (isSuccess(status)) return this.#complete();
    const left = this.#leave();
    const verdict = status === 409 ? this.#handlerAnswered409() : undefined;
    return isPromiseLike(left) ? after(left, verdict) : verdict;
  }

  /**
   * A handler may end the response inside a transaction that commits when the present call stack returns, and on its own
   * connection it would read its own uncommitted record: I4 needs the look from outside.
   *
   * After a 2xx, complete() would mark a payment as done that may have been rolled back (I3), and a release could free a key
   * whose commit is under way (I1): without a committed record nothing is touched, and recovery decides when the lease ends.
   * After a failure the release waits behind the transaction's own lock on the key, by the contract of completeIn: it finds
   * `done` and changes nothing, or the rollback, and frees the key for the retry (I3).
   */
  async #settleAfterTransaction(status: number): Promise<Verdict> {
    await Promise.resolve();
    if (!isSuccess(status)) return this.#settleNow(status);
    if (await this.#isDone()) return this.#finished();
    this.#finished();
    this.#alarm(
      "commit-not-confirmed",
      "was answered with success, but its completeIn() has not been committed",
    );
    return this.#inDoubt();
  }

  #complete(): Awaitable<Verdict> {
    const { store, storeTimeoutMs } = this.#state.options;
    let ownership: Awaitable<IdempotencyOwnership>;
    try {
      ownership = callStore(() => store.complete(this.#attempt.key, this.#attempt.token), storeTimeoutMs);
    } catch (error) {
      return this.#checkCompletion(error);
    }
    return isPromiseLike(ownership) ? this.#completeLater(ownership) : this.#completed(ownership);
  }

  async #completeLater(pending: Promise<IdempotencyOwnership>): Promise<Verdict> {
    try {
      return this.#completed(await pending);
    } catch (error) {
      return this.#checkCompletion(error);
    }
  }

  #completed(ownership: IdempotencyOwnership): Verdict {
    this.#finished();
    if (ownership === "ok") return undefined;
    this.#alarm("completion-lost", "was answered with success, but belongs to another attempt");
    return this.#inDoubt();
  }

  /** The store did not answer: it may have done it. Otherwise it is asked again while the heartbeat keeps others out (I1). */
  async #checkCompletion(error: unknown): Promise<Verdict> {
    if (await this.#isDone()) return this.#finished();
    this.#alarm(
      "completion-delayed",
      "was answered with success, but the store did not record it yet",
      error,
    );
    const { options, retries } = this.#state;
    const { key, token } = this.#attempt;
    retries.repeat(
      async () => {
        this.#completed(await callStore(() => options.store.complete(key, token), options.storeTimeoutMs));
        return true;
      },
      () => this.#abandoned(),
    );
    return this.#inDoubt();
  }

  /** Gives the key back, or holds it when the effect may have happened. The answer need not wait for a store that is down. */
  #leave(): Awaitable<void> {
    const { options, retries } = this.#state;
    const { key, token } = this.#attempt;
    const { holdReason } = this.#intent;
    const step = (): Awaitable<IdempotencyOwnership> =>
      callStore(
        () =>
          holdReason === undefined
            ? options.store.release(key, token)
            : options.store.hold(key, token, holdReason),
        options.storeTimeoutMs,
      );
    const failed = (): void => {
      // The heartbeat goes on: a key on its way out must be neither held for its lease (I3) nor, where its effect may have
      // happened, taken over (I1).
      const again = async (): Promise<boolean> => this.#left(await step());
      retries.repeat(again, () => this.#abandoned());
    };
    try {
      const ownership = step();
      if (isPromiseLike(ownership)) return this.#leaveLater(ownership, failed);
      this.#left(ownership);
    } catch {
      failed();
    }
  }

  async #leaveLater(pending: Promise<IdempotencyOwnership>, failed: () => void): Promise<void> {
    try {
      this.#left(await pending);
    } catch {
      failed();
    }
  }

  #left(ownership: IdempotencyOwnership): true {
    this.#finished();
    const { holdReason, inTransaction } = this.#intent;
    // After completeIn the key may be lost to this attempt's own commit.
    if (ownership !== "ok" && holdReason !== undefined && !inTransaction) {
      this.#alarm("hold-lost", `could not be held (${holdReason}): it belongs to another attempt`);
    }
    return true;
  }

  #finished(): undefined {
    this.#state.heartbeats.remove(this.#lease);
    this.#state.waiters.wake(this.#attempt.key);
  }

  #abandoned(): void {
    this.#finished();
    this.#alarm("settlement-abandoned", "could not be settled for an hour; recovery decides about it");
  }

  /** Whether the store has this attempt's own durable record; false when it does not say. */
  async #isDone(): Promise<boolean> {
    const { store, storeTimeoutMs } = this.#state.options;
    const { key, token } = this.#attempt;
    let record: IdempotencyRecord | undefined;
    try {
      record = await callStore(() => store.read(key), storeTimeoutMs);
    } catch {
      return false;
    }
    return record?.state === "done" && record.token === token;
  }

  // A business conflict with this status would be read as "already paid", and the payout would never be retried.
  #handlerAnswered409(): Replacement {
    this.#alarm("handler-answered-409", "has a handler that answers 409, which is left to processed keys");
    return { status: 500 };
  }

  #inDoubt(): Replacement {
    return { status: 503, retryAfterSeconds: this.#state.options.retryAfterSeconds };
  }

  #alarm(code: string, message: string, error?: unknown): void {
    const { key, req } = this.#attempt;
    alarm({ code, key, message, req, error });
  }
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

async function after<T>(work: Promise<void>, value: T): Promise<T> {
  await work;
  return value;
}
