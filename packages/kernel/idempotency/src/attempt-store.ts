import { askStore, isPromiseLike } from "@countersign/core/door";
import type { ResolvedKeyOptions } from "./key-options.ts";
import { storeUnavailable } from "./refusals.ts";
import type {
  Awaitable,
  IdempotencyClaimResult,
  IdempotencyOwnership,
  IdempotencyRecord,
  IdempotencyStore,
} from "./store.ts";

type StoreStep = Parameters<typeof askStore>[0];

/** One attempt to own a key. */
export interface KeyAttempt {
  readonly key: string;
  /** Digest of the payload, at most 128 characters. */
  readonly fingerprint: string;
  /** Random, new for each attempt. */
  readonly token: string;
  /** What wants the key, for notices: the request as its framework knows it. */
  readonly req?: object | undefined;
}

/** A store, and how long one call of it may take, in milliseconds. */
interface TimedStore {
  readonly store: IdempotencyStore<unknown>;
  readonly storeTimeoutMs: number;
}

/** Asks the store for a record; undefined when the key is absent, also where a store of one's own says null. Rejects when it fails. */
export async function readRecord(timed: TimedStore, key: string): Promise<IdempotencyRecord | undefined> {
  return (await askStore(stepOf(timed, "read"), () => timed.store.read(key))) ?? undefined;
}

function stepOf({ store: { engine }, storeTimeoutMs: timeoutMs }: TimedStore, step: string): StoreStep {
  return { engine, step, timeoutMs, name: "the idempotency store" };
}

// On the record, so that nobody takes it for a person's decision.
const neverRan = { by: "countersign", note: "given back: its handler never ran" };

/**
 * The store, as one attempt asks it about its own key. Each method fails when the store throws, rejects or is late, with its error unless
 * the method says otherwise; await it where it is called.
 */
export class AttemptStore {
  readonly attempt: KeyAttempt;
  readonly options: ResolvedKeyOptions;
  #claimed: Promise<unknown> | undefined;

  constructor(options: ResolvedKeyOptions, attempt: KeyAttempt) {
    this.options = options;
    this.attempt = attempt;
  }

  /** The answer to claim() that is not there yet, or was not when it was due; undefined where the store answered or threw at once. */
  get claimUnderWay(): Promise<unknown> | undefined {
    return this.#claimed;
  }

  /** Fails with a GuardError (503). Its time counts as `storeMs`. */
  claim(): Awaitable<IdempotencyClaimResult> {
    const { store, leaseMs, recovery, retryAfterSeconds } = this.options;
    const { key, token, fingerprint, req } = this.attempt;
    const failure = (cause: unknown): Error => storeUnavailable(cause, retryAfterSeconds);
    return askStore({ ...stepOf(this.options, "claim"), failure, req }, () => {
      const answer = store.claim(key, { token, fingerprint, leaseMs, recovery });
      if (!isPromiseLike(answer)) return answer;
      // One promise for both who wait: some drivers send a query at each then().
      const claimed = Promise.resolve(answer);
      this.#claimed = claimed;
      return claimed;
    });
  }

  heartbeat(): Awaitable<IdempotencyOwnership> {
    const { store, leaseMs, storeTimeoutMs } = this.options;
    const { key, token } = this.attempt;
    const timeoutMs = Math.min(storeTimeoutMs, leaseMs / 3);
    const step = { ...stepOf(this.options, "heartbeat"), timeoutMs };
    return askStore(step, () => store.heartbeat(key, token, leaseMs));
  }

  complete(): Awaitable<IdempotencyOwnership> {
    const { key, token } = this.attempt;
    return askStore(stepOf(this.options, "complete"), () => this.options.store.complete(key, token));
  }

  /** In the caller's own transaction. Fails with a GuardError (503), and with the TypeError of a store that is given no transaction. */
  completeIn(tx: unknown): Awaitable<IdempotencyOwnership> {
    const { store, retryAfterSeconds } = this.options;
    const { key, token } = this.attempt;
    // The handler's mistake, which no retry mends.
    const failure = (cause: unknown): unknown =>
      cause instanceof TypeError ? cause : storeUnavailable(cause, retryAfterSeconds);
    const step = { ...stepOf(this.options, "completeIn"), failure };
    return askStore(step, () => store.completeIn?.(tx, key, token) ?? "lost");
  }

  release(): Awaitable<IdempotencyOwnership> {
    const { key, token } = this.attempt;
    return askStore(stepOf(this.options, "release"), () => this.options.store.release(key, token));
  }

  /** `ok` also when it was held by an earlier call, whose answer was lost or late. */
  async hold(reason: string): Promise<IdempotencyOwnership> {
    const { key, token } = this.attempt;
    const step = stepOf(this.options, "hold");
    if ((await askStore(step, () => this.options.store.hold(key, token, reason))) === "ok") return "ok";
    return this.#isOwn(await this.read(), "held") ? "ok" : "lost";
  }

  read(): Promise<IdempotencyRecord | undefined> {
    return readRecord(this.options, this.attempt.key);
  }

  /** Whether the store has this attempt's own durable record, read from outside of any transaction. */
  async isDone(): Promise<boolean> {
    return this.#isOwn(await this.read(), "done");
  }

  /** Frees a key of which nothing has run (I13), also where its lease has ended meanwhile and a claim has held it. */
  async giveBack(): Promise<IdempotencyOwnership> {
    const { key } = this.attempt;
    if ((await this.release()) === "ok") return "ok";
    const record = await this.read();
    if (record === undefined || !this.#isOwn(record, "held")) return "lost";
    const decision = { fence: record.fence, ...neverRan };
    const step = stepOf(this.options, "resolve");
    const resolved = await askStore(step, () => this.options.store.resolve(key, "released", decision));
    return resolved === "ok" ? "ok" : "lost";
  }

  #isOwn(record: IdempotencyRecord | undefined, state: IdempotencyRecord["state"]): boolean {
    return record?.state === state && record.token === this.attempt.token;
  }
}
