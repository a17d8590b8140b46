import { AsyncLocalStorage } from "node:async_hooks";
import type { GuardError } from "@countersign/core";
import { type Replacement } from "@countersign/core/door";
import type { Awaitable, IdempotencyKeys, OwnedKey } from "@countersign/idempotency";
import type { KeyAttempt, Waiters } from "@countersign/idempotency/door";
import type { IdempotencyGuardCode } from "./codes.ts";
import { callbackEnd, isStop } from "./handler-end.ts";
import type { ResolvedOwnerOptions } from "./options.ts";
import { refusal } from "./refusals.ts";
import type { GivenAnswer, Replay } from "./replay.ts";
import type { RequestIdempotency } from "./request-idempotency.ts";

export interface Attempt extends KeyAttempt {
  readonly req: object;
  /** The key as the caller sent it, where the store's is another one. */
  readonly sentKey?: string | undefined;
}

/** What a done key is answered with. */
export interface DoneAnswers<Kept> {
  readonly replay: Kept | undefined;
  /** Without a kept answer. */
  readonly doneStatus: 409 | 200 | 204;
}

/** Shared by all attempts at one guard. */
export interface GuardState extends DoneAnswers<Replay> {
  readonly options: ResolvedOwnerOptions;
  readonly keys: IdempotencyKeys;
  readonly waiters: Waiters;
  /** Whether no handler may answer 409. */
  readonly isReserved: boolean;
}

const maxReasonLength = 256;

// Follows a handler's own work. A time-out middleware before the guard has set its timer outside of it.
const handlers = new AsyncLocalStorage<OwnedRun>();

/** A handler's ownership of its key, which its answer's status ends. */
export class OwnedRun {
  readonly owned: OwnedKey;
  readonly handle: RequestIdempotency;
  readonly #attempt: Attempt;
  readonly #keys: IdempotencyKeys;
  readonly #recovery: "hold" | "rerun";
  readonly #leaseMs: number;
  readonly #replay: Replay | undefined;
  readonly #isReserved: boolean;
  /** There until the handler's promise has ended; resolves to whether its signal has stopped it. */
  #working: Promise<boolean> | undefined;
  #holdReason: string | undefined;
  #responseEnded = false;
  #hasBegun = true;
  #hasFailed = false;
  #hasPassedOn = false;

  constructor({ keys, options, replay, isReserved }: GuardState, attempt: Attempt, owned: OwnedKey) {
    this.#attempt = attempt;
    this.owned = owned;
    this.handle = new AttemptHandle(attempt, this);
    this.#keys = keys;
    this.#recovery = options.recovery;
    this.#leaseMs = options.leaseMs;
    this.#replay = replay;
    this.#isReserved = isReserved;
  }

  /**
   * How much of a body decide() takes, and how long to read it before the key is done without it: in time even without heartbeats.
   * Undefined where no answer is kept.
   */
  get keeps(): { readonly limitBytes: number; readonly readMs: number } | undefined {
    return this.#replay && { limitBytes: this.#replay.limitBytes, readMs: this.#leaseMs / 2 };
  }

  /** Starts the handler. `hold` has to know later whether it was the handler that answered. */
  start<T>(handler: () => T): T {
    return this.#recovery === "hold" ? handlers.run(this, handler) : handler();
  }

  /** For doors with the handler's promise: under `hold` a 5xx or 408 ends the key only after it. */
  watch(handler: Promise<unknown>): void {
    if (this.#recovery === "hold" && !this.#responseEnded) this.#working = this.#untilEnded(handler);
  }

  /** For doors: the handler has answered, and at most waits until that has left. */
  handlerAnswered(): void {
    this.#working = undefined;
  }

  /** I2: its success becomes 500 from here on. */
  failed(): void {
    this.#hasFailed = true;
  }

  /** I9: a 404 or 405 from here on is no handler's, and the one that handed the request on may have paid. */
  passedOn(): void {
    this.#hasPassedOn = this.#recovery === "hold" && !this.#hasFailed;
  }

  /** Makes any failure from here on hold the key; throws when it is too late. */
  hold(reason: string): void {
    if (this.#responseEnded) throw new Error("req.idempotency.hold: the response has ended already");
    this.#holdReason = reason.slice(0, maxReasonLength);
  }

  /**
   * Ends the key by the answer's status; undefined lets the answer out. Never rejects. Calls `answer` at once, if answers are kept.
   * `hasLeft`: nobody can receive the answer any more.
   */
  decide(status: number, answer?: () => GivenAnswer, hasLeft = false): Promise<Replacement | undefined> {
    this.#responseEnded = true;
    const isSuccess = status >= 200 && status < 300;
    if (isSuccess && this.#hasFailed) return this.#successOfOthers(status);
    // An explicit success outweighs an earlier hold().
    if (isSuccess) return this.owned.complete(this.#keeping(answer));
    // A handler's deliberate refusal has no effect; but a server error in its place may come while it still works. 499 is nginx's, which
    // apps answer to nobody.
    const isDoubt = status >= 500 || status === 408 || (hasLeft && status === 499);
    if (this.#recovery === "hold" && isDoubt) return this.#failedInDoubt(status, hasLeft);
    if (this.#hasPassedOn && (status === 404 || status === 405) && !this.owned.inTransaction) {
      this.#doubt(`answered with ${status} behind its handler, which passed it on and may have paid`);
    }
    return this.#failed(status);
  }

  /** I1: the page of an error handler, or a handler behind it that has paid in place of the failed one. */
  async #successOfOthers(status: number): Promise<Replacement> {
    if (this.#recovery === "hold" && !this.owned.inTransaction) {
      this.#doubt(
        `answered with ${status} after its handler had failed: look whether something else has paid`,
      );
    }
    return (await this.#failed(500)) ?? { status: 500 };
  }

  async #failedInDoubt(status: number, hasLeft: boolean): Promise<Replacement | undefined> {
    const isHandlers = handlers.getStore() === this;
    // A handler that has answered itself ends in the same callback.
    if (isHandlers && this.#working !== undefined) await callbackEnd();
    const working = this.#working;
    if (working !== undefined) {
      // I11. The answer leaves without waiting: the handler may wait for it.
      this.owned.abort();
      void this.#outlived(status, working);
      return undefined;
    }
    if (!isHandlers) {
      this.#doubt(`answered with ${status} in place of its handler, which may still be at work`);
    } else if (hasLeft && !this.owned.inTransaction) {
      // I1: answering nobody fails (a pipe, a fetch with the request's signal), also behind a payment. A completeIn() tells by its record.
      this.#doubt(
        `answered with ${status} after its caller had left, which may have failed a handler that had paid`,
      );
    }
    return this.#failed(status);
  }

  /** I9: keeps the key until the handler has ended, which may have paid unless its signal stopped it. */
  async #outlived(status: number, working: Promise<boolean>): Promise<void> {
    const isStopped = await working;
    if (!isStopped) this.#doubt(`answered with ${status} before its handler had ended, which may have paid`);
    await this.#leave();
  }

  async #untilEnded(handler: Promise<unknown>): Promise<boolean> {
    try {
      await handler;
      return false;
    } catch (error) {
      return isStop(error);
    } finally {
      this.#working = undefined;
    }
  }

  // I15: before the record, so that every reader of the record finds the answer.
  #keeping(answer: (() => GivenAnswer) | undefined): (() => Promise<void>) | undefined {
    const replay = this.#replay;
    if (replay === undefined) return undefined;
    const given = answer?.();
    return () => replay.keep(this.#attempt, given);
  }

  async #failed(status: number): Promise<Replacement | undefined> {
    const left = this.#leave();
    const replacement = status === 409 && this.#isReserved ? this.#handlerAnswered409() : undefined;
    await left;
    return replacement;
  }

  /** For doors whose handler returned no answer: holds the key, since it may have had its effect. */
  async unanswered(): Promise<GuardError<IdempotencyGuardCode>> {
    this.#responseEnded = true;
    this.#doubt("its handler returned no Response, and may have had its effect");
    await this.#leave();
    return refusal("handler-without-response");
  }

  /** For a response that the app destroyed: its handler may still work, and nothing will report its end. */
  destroyed(): void {
    this.#responseEnded = true;
    if (this.#recovery === "hold") {
      this.#doubt("its response was destroyed while its handler may still have been at work");
    }
    void this.#leave();
  }

  /** For a response whose pipe has stopped with its caller: holds the key now, not at its time-out. A later 2xx still completes it. */
  deserted(): void {
    if (this.#recovery === "rerun" || this.owned.inTransaction || !this.#hasBegun) return;
    this.#doubt("its caller had left before its answer ended");
    void this.#leave();
  }

  /** I1: the app, such as its time-out, answered during the claim. The sender retries; a handler would pay with its key free. */
  answeredBefore(): void {
    this.#noticeAnswered();
    this.giveBack();
  }

  /** I13: for a door with a step of its own before the handler. What ends the key before mayBegin() gives it back: nothing was paid. */
  beginsLater(): void {
    this.#hasBegun = false;
  }

  /** I9: whether the handler may begin after a door's own step, during which the app may have answered and so ended the key. */
  mayBegin(): boolean {
    if (this.#responseEnded) this.#noticeAnswered();
    else this.#hasBegun = true;
    return !this.#responseEnded;
  }

  #noticeAnswered(): void {
    const { key, req } = this.#attempt;
    const message = "was claimed for a request that was answered meanwhile: no handler begins";
    this.#keys.notice({ code: "answered-before-handler", key, message, req });
  }

  /** Frees the key of a handler that has not begun. */
  giveBack(): void {
    void this.owned.giveBack();
  }

  /** For an answer that was let out and could not be sent. */
  unsendable(error: unknown): void {
    const { key, req } = this.#attempt;
    const message = "has an answer that could not be sent";
    this.#keys.alarm({ code: "answer-unsendable", key, message, req, error });
  }

  /** Holds the key when it is left, unless nothing has begun. What the app said itself, by hold(), stays. */
  #doubt(reason: string): void {
    if (this.#hasBegun) this.#holdReason ??= reason;
  }

  #leave(): Promise<void> {
    if (!this.#hasBegun && this.#holdReason === undefined) return this.owned.giveBack();
    return this.#holdReason === undefined ? this.owned.release() : this.owned.hold(this.#holdReason);
  }

  // Read as "already paid", a business conflict would end the payout's retries.
  #handlerAnswered409(): Replacement {
    const { key, req } = this.#attempt;
    const message = "has a handler that answers 409, which is left to processed keys";
    this.#keys.alarm({ code: "handler-answered-409", key, message, req });
    return { status: 500 };
  }
}

/** A class because of `signal`: V8 takes ten times as long for an object literal with a getter. */
class AttemptHandle implements RequestIdempotency {
  readonly key: string;
  readonly storeKey: string;
  readonly token: string;
  readonly fence: number;
  readonly #run: OwnedRun;

  constructor({ key, sentKey = key, token }: Attempt, run: OwnedRun) {
    this.key = sentKey;
    this.storeKey = key;
    this.token = token;
    this.fence = run.owned.fence;
    this.#run = run;
  }

  get signal(): AbortSignal {
    return this.#run.owned.signal;
  }

  // Own functions, so that a handler can take them out of the object.
  readonly completeIn = (tx: unknown): Awaitable<void> => this.#run.owned.completeIn(tx);

  readonly committed = (): Promise<boolean> => this.#run.owned.isDone();

  readonly hold = (reason: string): void => {
    if (typeof reason !== "string" || reason === "") {
      throw new TypeError("req.idempotency.hold: the reason must be a string that is not empty");
    }
    this.#run.hold(reason);
  };
}
