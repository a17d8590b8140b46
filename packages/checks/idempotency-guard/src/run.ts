import { AsyncLocalStorage } from "node:async_hooks";
import type { GuardError } from "@countersign/core";
import { type Replacement } from "@countersign/core/internal";
import type { IdempotencyKeys, OwnedKey } from "@countersign/idempotency";
import {
  isSuccess,
  verdictOf,
  type AttemptEnd,
  type EndRules,
  type KeyAttempt,
  type Waiters,
} from "@countersign/idempotency/internal";
import type { IdempotencyGuardCode } from "./codes.ts";
import { callbackEnd } from "./handler-end.ts";
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

/** A handler's ownership of its key. Its adapter tells what it sees; `verdictOf()` decides what becomes of key and response. */
export class OwnedRun {
  readonly owned: OwnedKey;
  readonly handle: RequestIdempotency;
  readonly #attempt: Attempt;
  readonly #keys: IdempotencyKeys;
  readonly #rules: EndRules;
  readonly #leaseMs: number;
  readonly #replay: Replay | undefined;
  /** There until the handler's promise has settled. */
  #working: Promise<void> | undefined;
  #holdReason: string | undefined;
  #responseEnded = false;
  /** Somebody else ended the response, or its caller left; the handler's own end may follow. */
  #isTaken = false;
  #hasBegun = true;
  #hasHandedOn = false;
  #hasEverHandedOn = false;
  /** True if the response began in the asynchronous context of the handler. */
  #isOwnResponse = false;
  #thrown: { readonly error: unknown } | undefined;
  /** An error that did not come from the handler, such as that of a time-out in front of the guard. */
  #foreign: { readonly error: unknown } | undefined;
  /** The status of a response that was given to its adapter, which serializes and sends it later. */
  #given: number | undefined;
  /** The status of the handler's response that failed before its end, of a success alone. */
  #failedSuccess: number | undefined;

  constructor({ keys, options, replay, isReserved }: GuardState, attempt: Attempt, owned: OwnedKey) {
    this.#attempt = attempt;
    this.owned = owned;
    this.handle = new AttemptHandle(attempt, this);
    this.#keys = keys;
    this.#rules = { recovery: options.recovery, isReserved };
    this.#leaseMs = options.leaseMs;
    this.#replay = replay;
  }

  /**
   * How much of a body decide() takes, and how long to read it before the key is done without it: in time even without heartbeats.
   * Undefined where no answer is kept.
   */
  get keeps(): { readonly limitBytes: number; readonly readMs: number } | undefined {
    return this.#replay && { limitBytes: this.#replay.limitBytes, readMs: this.#leaseMs / 2 };
  }

  /** How long an adapter may read a response before the key is done, in milliseconds: half of the lease. */
  get readMs(): number {
    return this.#leaseMs / 2;
  }

  /** Starts the handler. Its asynchronous context tells later whether it was the handler that responded. */
  start<T>(handler: () => T): T {
    return handlers.run(this, handler);
  }

  /** For adapters with the handler's promise: they know until when the handler works. */
  watch(handler: Promise<unknown>): void {
    if (!this.#responseEnded) this.#working = this.#untilEnded(handler);
  }

  /** For adapters: the handler has responded, and at most waits until that has left. */
  handlerAnswered(): void {
    this.#working = undefined;
  }

  /** The handler threw or rejected. `begun`: the status of its response that had begun by then. */
  failed(error: unknown, begun?: number): void {
    if (this.#foreign !== undefined && this.#foreign.error === error) return;
    if (this.#working !== undefined && !this.isWithin) {
      this.failedElsewhere(error);
      return;
    }
    this.#thrown ??= { error };
    this.responseFailed(begun ?? this.#given);
    this.#endsLate();
  }

  /** An error of somebody else than the handler, which may be at work: the response that follows is not the handler's. */
  failedElsewhere(error: unknown): void {
    if (this.#thrown === undefined) this.#foreign ??= { error };
  }

  /** Something failed, and the asynchronous context tells whether it was the handler. */
  failedSomewhere(error: unknown, begun?: number): void {
    if (this.isWithin) this.failed(error, begun);
    else this.failedElsewhere(error);
  }

  /** The handler never runs, unless an earlier one has handed the request on. */
  neverBegan(): void {
    if (!this.#hasEverHandedOn) this.#hasBegun = false;
  }

  /** For adapters that serialize and send a response later: the second one takes the place of the first, which has failed. */
  given(status: number): void {
    if (this.#isTaken) this.respondedLate(status);
    else if (this.#responseEnded || this.#thrown !== undefined || this.#foreign !== undefined) return;
    else if (this.#given === undefined) this.#given = status;
    else this.responseFailed(this.#given);
  }

  /** True in the asynchronous context of this run's handler. */
  get isWithin(): boolean {
    return handlers.getStore() === this;
  }

  /** A source that was piped to the response has failed: with a success, that began, whether or not a byte of it came. */
  pipeFailed(status: number): void {
    if (isSuccess(status)) this.#given ??= status;
  }

  /** A response begins: the handler's own one ends wherever a stream or a session's store calls back. */
  responseBegun(): void {
    this.#isOwnResponse = this.isWithin;
  }

  /** The handler's response had begun with `begun`, and another takes its place. */
  responseFailed(begun: number | undefined): void {
    if (begun !== undefined && isSuccess(begun)) this.#failedSuccess ??= begun;
  }

  /** I9: the handlers of the route have handed the request on: a failure from here on is not theirs, and they may have paid. */
  passedOn(hasPassed: boolean): void {
    this.#hasHandedOn = hasPassed;
    this.#hasEverHandedOn ||= hasPassed;
  }

  /** Makes any failure from here on hold the key; throws when it is too late. */
  hold(reason: string): void {
    if (this.#responseEnded) throw new Error("req.idempotency.hold: the response has ended already");
    this.#holdReason = reason.slice(0, maxReasonLength);
  }

  /**
   * Ends the key by how the attempt ended; undefined lets the response out. Never rejects. Calls `answer` at once, if answers are kept.
   * `hasLeft`: nobody can receive the response any more.
   */
  async decide(
    status: number,
    answer?: () => GivenAnswer,
    hasLeft = false,
  ): Promise<Replacement | undefined> {
    const isHandlers = this.isWithin;
    this.#responseEnded = true;
    // A handler that has responded itself ends in the same callback.
    if (isHandlers && status >= 500 && this.#working !== undefined) await callbackEnd();
    return this.#perform(this.#endOf(status, { isHandlers, hasLeft }), answer);
  }

  #endOf(
    status: number,
    { isHandlers, hasLeft }: { readonly isHandlers: boolean; readonly hasLeft: boolean },
  ): AttemptEnd {
    if (!this.#hasBegun) return { kind: "never-began", status };
    if (this.#failedSuccess !== undefined) {
      return { kind: "response-failed", begun: this.#failedSuccess, status };
    }
    if (this.#thrown !== undefined) return { kind: "threw", error: this.#thrown.error, status };
    if (this.#given !== undefined && isSuccess(this.#given) && !isSuccess(status)) {
      return { kind: "response-failed", begun: this.#given, status };
    }
    const isWorking = this.#working !== undefined;
    const isOwn = this.#isOwnResponse || this.#given !== undefined;
    // Callbacks of some libraries lose the handler's asynchronous context: its success there is still its own. A refusal could be
    // somebody else's, and would free a key whose handler may pay.
    const isTaken = isHandlers
      ? isWorking && status >= 500
      : isWorking || this.#foreign !== undefined || (!isOwn && status >= 400);
    if (isTaken) return { kind: "taken", status };
    if (this.#hasHandedOn) return { kind: "handed-on", status };
    // 499 is nginx's, which apps answer to nobody.
    if (hasLeft && (status >= 500 || status === 408 || status === 499)) return { kind: "deserted", status };
    return { kind: "responded", status };
  }

  /** The only place where an attempt of lease mode ends its key. */
  async #perform(end: AttemptEnd, answer?: () => GivenAnswer): Promise<Replacement | undefined> {
    const { key, reason, response, isFalse409 } = verdictOf(end, this.#rules);
    const replacement: Replacement | undefined = response === 500 ? { status: 500 } : undefined;
    if (key === "done") return this.owned.complete(this.#keeping(answer));
    if (isFalse409) this.#alarmOf409();
    if (end.kind === "taken" || end.kind === "deserted") this.#isTaken = true;
    if (end.kind === "never-began" && this.#holdReason === undefined) {
      await this.owned.giveBack();
    } else if (key === "leased" && this.#holdReason === undefined) {
      this.#leaveToLease();
    } else if (this.#holdReason !== undefined) {
      await this.owned.hold(this.#holdReason);
    } else if (key === "held") {
      await this.owned.hold((reason ?? "").slice(0, maxReasonLength));
    } else {
      await this.owned.release();
    }
    return replacement;
  }

  /** Under `rerun`: the handler's promise tells when it has ended, otherwise the end of the lease does. */
  #leaveToLease(): void {
    const working = this.#working;
    this.owned.abort();
    if (working === undefined) this.owned.leaveToLease();
    else void working.then(() => this.owned.release());
  }

  async #untilEnded(handler: Promise<unknown>): Promise<void> {
    try {
      await handler;
    } catch {
      // Its adapter reports it.
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

  /** For adapters whose handler returned no response. */
  async unanswered(): Promise<GuardError<IdempotencyGuardCode>> {
    this.#responseEnded = true;
    await this.#perform({ kind: "without-response" });
    return refusal("handler-without-response");
  }

  /** For a response that the app destroyed. */
  destroyed(): void {
    this.#responseEnded = true;
    void this.#perform({ kind: this.#hasBegun ? "taken" : "never-began", status: undefined });
  }

  /** For a response whose pipe has stopped with its caller: perhaps nobody ends it. */
  deserted(): void {
    if (!this.#hasBegun) return;
    void this.#perform({ kind: "deserted", status: undefined });
  }

  /** For a response that the handler ends after somebody else has: a success completes a key that is held, or left to its lease. */
  respondedLate(status: number): void {
    if (!this.#isTaken || !this.isWithin) return;
    if (!isSuccess(status)) this.#endsLate();
    else if (this.#thrown === undefined) {
      this.#isTaken = false;
      void this.owned.complete();
    }
  }

  /** Under `rerun`: frees a key that was left to its lease, since its handler has failed now. */
  #endsLate(): void {
    if (!this.#isTaken || this.#rules.recovery === "hold") return;
    this.#isTaken = false;
    void this.owned.release();
  }

  /** I1: the app, such as its time-out, answered during the claim. The sender retries; a handler would pay with its key free. */
  answeredBefore(): void {
    this.#noticeAnswered();
    this.giveBack();
  }

  /** I13: for an adapter with a step of its own before the handler. What ends the key before mayBegin() gives it back: nothing was paid. */
  beginsLater(): void {
    this.#hasBegun = false;
  }

  /** I9: whether the handler may begin after an adapter's own step, during which the app may have answered and so ended the key. */
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

  // Read as "already paid", a business conflict would end the payout's retries.
  #alarmOf409(): void {
    const { key, req } = this.#attempt;
    const message = "has a handler that answers 409, which is left to processed keys";
    this.#keys.alarm({ code: "handler-answered-409", key, message, req });
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

  // An own function, so that a handler can take it out of the object.
  readonly hold = (reason: string): void => {
    if (typeof reason !== "string" || reason === "") {
      throw new TypeError("req.idempotency.hold: the reason must be a string that is not empty");
    }
    this.#run.hold(reason);
  };
}
