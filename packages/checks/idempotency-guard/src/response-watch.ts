import { AsyncLocalStorage } from "node:async_hooks";
import { createRequestFact, type RequestFact } from "@countersign/core";
import type { Replacement } from "@countersign/core/internal";
import { isSuccess, keyNotices, type AttemptEnd } from "@countersign/idempotency/internal";
import { callbackEnd } from "./handler-end.ts";
import { factoryName } from "./options.ts";
import type { HandlerEnd, OwnedRequest } from "./owned-request.ts";
import type { GivenAnswer } from "./replay.ts";

const watches: RequestFact<ResponseWatch> = createRequestFact();

// Follows a handler's own work. A time-out middleware before the guard has set its timer outside of it.
const handlers = new AsyncLocalStorage<ResponseWatch>();

const notices = keyNotices(factoryName);

/** The watch over the response to a request that owns its key; undefined for every other request. */
export function watchOf(subject: object): ResponseWatch | undefined {
  return watches.get(subject);
}

/**
 * Watches the response of a handler that another function begins: Express's next one, or Fastify's. Its adapter tells what it sees of
 * handler and response; from that the watch says once how the response has ended, and holds it back until the key is.
 */
export class ResponseWatch {
  readonly owned: OwnedRequest;
  /** Resolves when the response ends. */
  readonly end: Promise<HandlerEnd>;
  #tellEnd: (end: HandlerEnd) => void = () => {};
  readonly #decision: Promise<Replacement | undefined>;
  #decide: (replacement: Replacement | undefined) => void = () => {};
  #hasToldEnd = false;
  /** Of a handler that may be at work although its response has ended. */
  #tellOwnEnd: (end: AttemptEnd) => void = () => {};
  /** There until the handler's promise has settled. */
  #working: Promise<void> | undefined;
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

  constructor(subject: object, owned: OwnedRequest) {
    this.owned = owned;
    this.end = new Promise((resolve) => (this.#tellEnd = resolve));
    this.#decision = new Promise((resolve) => (this.#decide = resolve));
    watches.set(subject, this);
  }

  /** The key has ended: lets the response out that waits for that, or what replaces it. */
  decided(replacement: Replacement | undefined): void {
    this.#decide(replacement);
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
    if (this.#isTaken) this.#tellOwnEnd({ kind: "threw", error, status: 500 });
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

  /** True in the asynchronous context of this request's handler. */
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

  /**
   * The response ends with `status`. Resolves once the key has ended; undefined lets the response out. Never rejects. Calls `answer` at once,
   * if responses are kept. `hasLeft`: nobody can receive the response any more.
   */
  async decide(
    status: number,
    answer?: () => GivenAnswer,
    hasLeft = false,
  ): Promise<Replacement | undefined> {
    const isHandlers = this.isWithin;
    this.#responded();
    // A handler that has responded itself ends in the same callback.
    if (isHandlers && status >= 500 && this.#working !== undefined) await callbackEnd();
    return this.#ended(this.#endOf(status, { isHandlers, hasLeft }), answer);
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
    return this.#hasHandedOn ? { kind: "handed-on", status } : respondedEnd(status, hasLeft);
  }

  /** Tells how the response has ended, once; what comes after that is the handler's own, late end. */
  #ended(end: AttemptEnd, answer?: () => GivenAnswer): Promise<Replacement | undefined> {
    if (this.#hasToldEnd) {
      if (end.kind !== "taken") this.#tellOwnEnd(end);
      return Promise.resolve(undefined);
    }
    this.#hasToldEnd = true;
    this.#isTaken = end.kind === "taken" || end.kind === "deserted";
    if (this.#isTaken) {
      const ownEnd = new Promise<AttemptEnd>((resolve) => (this.#tellOwnEnd = resolve));
      this.#tellEnd({ ...end, handler: { working: this.#working, ownEnd } });
    } else {
      const given = this.owned.keptBytes === undefined ? undefined : answer?.();
      this.#tellEnd({ ...end, given });
    }
    return this.#decision;
  }

  #responded(): void {
    this.#responseEnded = true;
    this.owned.responded();
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

  /** For a response that the app destroyed. */
  destroyed(): void {
    this.#responded();
    if (!this.#hasToldEnd)
      void this.#ended({ kind: this.#hasBegun ? "taken" : "never-began", status: undefined });
  }

  /** For a response whose pipe has stopped with its caller: perhaps nobody ends it. */
  deserted(): void {
    if (this.#hasBegun && !this.#hasToldEnd) void this.#ended({ kind: "deserted", status: undefined });
  }

  /** For a response that the handler ends after somebody else has: a success completes a key that is held, or left to its lease. */
  respondedLate(status: number): void {
    if (!this.#isTaken || !this.isWithin) return;
    if (this.#thrown === undefined) this.#tellOwnEnd({ kind: "responded", status });
  }

  /** I1: the app, such as its time-out, answered during the claim. The sender retries; a handler would pay with its key free. */
  answeredBefore(): void {
    this.#noticeAnswered();
    this.giveBack();
  }

  /** I13: for an adapter whose framework has steps before the handler. What ends the key before mayBegin() gives it back: nothing was paid. */
  beginsLater(): void {
    this.#hasBegun = false;
  }

  /** I9: whether the handler may begin after its framework's own steps, during which the app may have answered and so ended the key. */
  mayBegin(): boolean {
    if (this.#responseEnded) this.#noticeAnswered();
    else this.#hasBegun = true;
    return !this.#responseEnded;
  }

  #noticeAnswered(): void {
    const { key, req } = this.owned.run.attempt;
    const message = "was claimed for a request that was answered meanwhile: no handler begins";
    notices.notice({ code: "answered-before-handler", key, message, req });
  }

  /** Frees the key of a handler that has not begun. */
  giveBack(): void {
    this.#responded();
    void this.#ended({ kind: "never-began", status: undefined });
  }

  /** For a response that was let out and could not be sent. */
  unsendable(error: unknown): void {
    const { key, req } = this.owned.run.attempt;
    const message = "has an answer that could not be sent";
    notices.alarm({ code: "answer-unsendable", key, message, req, error });
  }
}

/** The end of a response that its handler has sent or returned itself. `hasLeft`: its caller, whom it may not have reached. */
export function respondedEnd(status: number, hasLeft: boolean): AttemptEnd {
  // 499 is nginx's, which apps answer to nobody.
  const isOfLeft = hasLeft && (status >= 500 || status === 408 || status === 499);
  return { kind: isOfLeft ? "deserted" : "responded", status };
}
