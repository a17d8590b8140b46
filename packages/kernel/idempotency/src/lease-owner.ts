import { setImmediate } from "node:timers/promises";
import type { Replacement } from "@countersign/core/internal";
import { verdictOf, type AttemptEnd, type AttemptVerdict, type EndRules } from "./attempt-end.ts";
import { recordReader } from "./attempt-store.ts";
import { IdempotencyKeys, type DrainOptions, type DrainReport } from "./idempotency-keys.ts";
import type { ResolvedKeyOptions } from "./key-options.ts";
import type { OwnedKey } from "./owned-key.ts";
import { perform, type Attempt, type KeyAttempt, type Performed, type WaitingRules } from "./perform.ts";
import { WaitingRoom, type Turn } from "./waiting.ts";

/** How the work of an attempt has ended, and what may still follow. */
export type WorkEnd = AttemptEnd & {
  /** Runs after the work and before its key is done, such as to keep the response (I15). Must not reject. */
  readonly beforeDone?: (() => Promise<void>) | undefined;
  /** Of the ends `taken` and `deserted`, after which the handler may still be at work. */
  readonly handler?: LateHandler | undefined;
};

interface LateHandler {
  /** Settles when the handler does. Undefined where nobody knows: then the end of the lease decides. Must not reject. */
  readonly working?: Promise<void> | undefined;
  /** Resolves to the handler's own end, after the end of its response. May never settle. */
  readonly ownEnd: Promise<AttemptEnd>;
}

/** What became of the key, and of the response. */
export interface LeaseEnd {
  readonly verdict: AttemptVerdict;
  /** To send in place of the handler's response. Undefined lets that out. */
  readonly replacement: Replacement | undefined;
}

/** What a handler's work knows of the key that it owns. */
export class LeasedRun {
  readonly attempt: KeyAttempt;
  readonly #owned: OwnedKey;
  #holdReason: string | undefined;

  constructor(attempt: KeyAttempt, owned: OwnedKey) {
    this.attempt = attempt;
    this.#owned = owned;
  }

  /** Grows with each attempt at the same key. */
  get fence(): number {
    return this.#owned.fence;
  }

  /** Aborts when another attempt may own the key, or another response has ended the request and freed it. */
  get signal(): AbortSignal {
    return this.#owned.signal;
  }

  /** Whether the attempt was told that another may own the key. */
  get lost(): boolean {
    return this.#owned.lost;
  }

  get holdReason(): string | undefined {
    return this.#holdReason;
  }

  /** Every end from here on but a success holds the key, for this reason. */
  hold(reason: string): void {
    this.#holdReason = reason;
  }
}

/** Runs the handler, and resolves to how that ended. A rejection counts as a throw of the handler. */
export type LeaseWork = (run: LeasedRun) => Promise<WorkEnd>;

export interface LeaseOwnerOptions extends Omit<ResolvedKeyOptions, "onSettled"> {
  /** How long a duplicate waits, in milliseconds. */
  readonly waitMs: number;
  /** How often to look at a key that another process has, in milliseconds. */
  readonly pollMs: number;
  readonly maxWaiters: number;
}

interface LeaseAttempt extends Pick<Attempt, "whileConnected"> {
  readonly key: KeyAttempt;
  /** Called as soon as the attempt owns the key; what it throws frees the key, and is the refusal. */
  readonly before?: (() => void) | undefined;
}

const longestReason = 256;

/** Owns keys by leases: for effects elsewhere, of which only the handler knows whether they have happened. */
export class LeaseOwner {
  readonly keys: IdempotencyKeys;
  readonly #waiting: WaitingRules;

  constructor(options: LeaseOwnerOptions) {
    const { factory, waitMs, pollMs, maxWaiters } = options;
    const room = new WaitingRoom(factory, maxWaiters);
    this.keys = new IdempotencyKeys({ ...options, onSettled: (key) => room.wake(key) });
    const read = recordReader(options);
    this.#waiting = { room, waitMs, pollOf: (key) => ({ pollMs, read: () => read(key) }) };
  }

  /** Rejects with a GuardError (503) when the store fails or the process drains, and with what `before` has thrown. */
  async perform(
    { key, before, whileConnected }: LeaseAttempt,
    rules: EndRules,
    work: LeaseWork,
  ): Promise<Performed<LeaseEnd>> {
    this.keys.assertNotDraining();
    return await perform({ keys: [key], whileConnected }, this.#waiting, (turn) =>
      this.#own(key, turn, async (owned) => {
        await assertBefore(owned, before);
        const run = new LeasedRun(key, owned);
        return this.#settle(owned, run, rules, await endOf(work, run));
      }),
    );
  }

  drain(options?: DrainOptions): Promise<DrainReport> {
    return this.keys.drain(options);
  }

  async #own(
    key: KeyAttempt,
    turn: Turn,
    work: (owned: OwnedKey) => Promise<LeaseEnd>,
  ): Promise<Performed<LeaseEnd>> {
    // When the lease is lost, this attempt gives its turn up, so that the next one in this process asks the store who owns the key.
    const owned = await this.keys.acquire(key, () => turn.leave());
    if (owned.status !== "acquired") {
      if (owned.status === "in-flight") return { status: "in-flight" };
      turn.leave(owned);
      return owned;
    }
    const result = await work(owned);
    const isDone = result.verdict.key === "done" && result.replacement === undefined;
    turn.leave(isDone ? { status: "done", fingerprint: key.fingerprint } : undefined);
    return { status: "ended", result };
  }

  /** Ends the key by how the work has ended: the only place where lease mode does. */
  async #settle(owned: OwnedKey, run: LeasedRun, rules: EndRules, end: WorkEnd): Promise<LeaseEnd> {
    const verdict = verdictOf(end, rules);
    const { key, reason, response, isFalse409 } = verdict;
    if (key === "done") return { verdict, replacement: await owned.complete(end.beforeDone) };
    if (isFalse409) this.#alarmOf409(run.attempt);
    if (end.handler !== undefined) {
      this.#followHandler(owned, run, rules, { ...end.handler, isLeased: key === "leased" });
    }
    const replacement = response === 500 ? { status: 500 } : undefined;
    const { holdReason } = run;
    if (holdReason !== undefined) await owned.hold(holdReason.slice(0, longestReason));
    // Nothing has run: the key is free even where its lease has ended, and a claim has held it.
    else if (end.kind === "never-began") await owned.giveBack();
    else if (key === "held") await owned.hold((reason ?? "").slice(0, longestReason));
    else if (key === "free") await owned.release();
    // The handler may be at work, and its own end decides: nobody will know of that end but the end of the lease,
    else if (end.handler?.working === undefined) owned.leaveToLease();
    // or its promise tells. Until then the lease is renewed.
    else owned.abort();
    return { verdict, replacement };
  }

  /**
   * The handler may end after its response has ended. Its own end then decides anew, as far as the key is still this attempt's: a success makes
   * it done, although it is held. Does not reject.
   */
  #followHandler(
    owned: OwnedKey,
    run: LeasedRun,
    rules: EndRules,
    { working, ownEnd, isLeased }: LateHandler & { readonly isLeased: boolean },
  ): void {
    let hasEnded = false;
    const ended = (end: AttemptEnd): void => {
      if (hasEnded) return;
      hasEnded = true;
      void this.#settle(owned, run, rules, end);
    };
    const follow = async (): Promise<void> => ended(await ownEnd);
    const followPromise = async (): Promise<void> => {
      await working;
      // What the handler has returned is sent after its promise has settled, and tells more.
      await setImmediate();
      ended({ kind: "unheard" });
    };
    void follow();
    if (isLeased && working !== undefined) void followPromise();
  }

  // Read as "already paid", a business conflict would end the payout's retries.
  #alarmOf409({ key, req }: KeyAttempt): void {
    const message = "has a handler that answers 409, which is left to processed keys";
    this.keys.alarm({ code: "handler-answered-409", key, message, req });
  }
}

async function assertBefore(owned: OwnedKey, before: (() => void) | undefined): Promise<void> {
  try {
    before?.();
  } catch (error) {
    await owned.giveBack();
    throw error;
  }
}

async function endOf(work: LeaseWork, run: LeasedRun): Promise<WorkEnd> {
  try {
    return await work(run);
  } catch (error) {
    return { kind: "threw", error, status: 500 };
  }
}
