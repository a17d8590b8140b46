import { askStore, isPromiseLike, type StoreStep } from "@countersign/core/internal";
import type { ResolvedKeyOptions } from "./key-options.ts";
import type { KeyAttempt } from "./perform.ts";
import { storeUnavailable } from "./refusals.ts";
import type {
  Awaitable,
  IdempotencyClaimResult,
  IdempotencyOwnership,
  IdempotencyRecord,
  IdempotencyStore,
} from "./store.ts";

export interface AskedStore {
  readonly options: ResolvedKeyOptions;
  readonly steps: Readonly<Record<StoreMethod, StoreStep>>;
}

type StoreMethod = Exclude<
  keyof IdempotencyStore,
  "close" | "engine" | "isPrivate" | "list" | "prune" | "retentionMs"
>;

/** Makes a store's steps once for all attempts. */
export function stepsOf({
  store,
  leaseMs,
  storeTimeoutMs,
  retryAfterSeconds,
}: ResolvedKeyOptions): AskedStore["steps"] {
  const unavailable = (cause: unknown): Error => storeUnavailable(cause, retryAfterSeconds);
  const stepOf = (step: StoreMethod, more?: Partial<StoreStep>): StoreStep => ({
    ...readStepOf({ store, storeTimeoutMs }),
    step,
    ...more,
  });
  return {
    claim: stepOf("claim", { failure: unavailable }),
    read: stepOf("read"),
    heartbeat: stepOf("heartbeat", { timeoutMs: Math.min(storeTimeoutMs, leaseMs / 3) }),
    complete: stepOf("complete"),
    release: stepOf("release"),
    hold: stepOf("hold"),
    resolve: stepOf("resolve"),
    readReleased: stepOf("readReleased"),
    reopen: stepOf("reopen"),
  };
}

function readStepOf({
  store: { engine },
  storeTimeoutMs: timeoutMs,
}: Pick<ResolvedKeyOptions, "store" | "storeTimeoutMs">): StoreStep {
  return { engine, step: "read", timeoutMs, name: "the idempotency store" };
}

/** Reads a record; undefined for an absent key, or an app's store's null. Rejects when the store fails. */
export async function readRecord(
  store: ResolvedKeyOptions["store"],
  step: StoreStep,
  key: string,
): Promise<IdempotencyRecord | undefined> {
  return (await askStore(step, () => store.read(key))) ?? undefined;
}

/** {@link readRecord} of one store. */
export function recordReader(
  options: Pick<ResolvedKeyOptions, "store" | "storeTimeoutMs">,
): (key: string) => Promise<IdempotencyRecord | undefined> {
  const step = readStepOf(options);
  return (key) => readRecord(options.store, step, key);
}

// On the record: no person has decided.
const neverRan = { by: "countersign", note: "given back: its handler never ran" };
const mayHavePaid = { by: "countersign", note: "taken back: the attempt went on, and may have paid" };

/** The store for one attempt and its key. Unless stated, methods fail with the store's error, or when it is late: await at once. */
export class AttemptStore {
  readonly attempt: KeyAttempt;
  readonly options: ResolvedKeyOptions;
  readonly #steps: AskedStore["steps"];
  #claimed: Promise<unknown> | undefined;

  constructor({ options, steps }: AskedStore, attempt: KeyAttempt) {
    this.options = options;
    this.#steps = steps;
    this.attempt = attempt;
  }

  /** claim()'s pending answer, even if late; undefined where the store answered or threw at once. */
  get claimUnderWay(): Promise<unknown> | undefined {
    return this.#claimed;
  }

  /** Fails with a GuardError (503). Its time counts as `storeMs`. */
  claim(): Awaitable<IdempotencyClaimResult> {
    const { store, leaseMs, recovery } = this.options;
    const { key, token, fingerprint, req } = this.attempt;
    const call = (): Awaitable<IdempotencyClaimResult> => {
      const answer = store.claim(key, { token, fingerprint, leaseMs, recovery });
      if (!isPromiseLike(answer)) return answer;
      // One promise for both who wait: some drivers send a query at each then().
      const claimed = Promise.resolve(answer);
      this.#claimed = claimed;
      return claimed;
    };
    return askStore(this.#steps.claim, call, req);
  }

  heartbeat(): Awaitable<IdempotencyOwnership> {
    return this.#ask("heartbeat", (store, key, token) => store.heartbeat(key, token, this.options.leaseMs));
  }

  complete(): Awaitable<IdempotencyOwnership> {
    return this.#ask("complete", (store, key, token) => store.complete(key, token));
  }

  release(): Awaitable<IdempotencyOwnership> {
    return this.#ask("release", (store, key, token) => store.release(key, token));
  }

  /** `ok` also when an earlier call, whose answer was lost or late, has held it. */
  async hold(reason: string): Promise<IdempotencyOwnership> {
    const held = await this.#ask("hold", (store, key, token) => store.hold(key, token, reason));
    return held === "ok" || this.#isOwn(await this.read(), "held") ? "ok" : "lost";
  }

  read(): Promise<IdempotencyRecord | undefined> {
    return readRecord(this.options.store, this.#steps.read, this.attempt.key);
  }

  /** Whether this attempt's record is durable. */
  async isDone(): Promise<boolean> {
    return this.#isOwn(await this.read(), "done");
  }

  /** Frees a key of which nothing has run (I13), even if its lease has ended and a claim has held it. */
  async giveBack(): Promise<IdempotencyOwnership> {
    if ((await this.release()) === "ok") return "ok";
    const record = await this.read();
    if (record === undefined || !this.#isOwn(record, "held")) return "lost";
    const decision = { fence: record.fence, ...neverRan };
    const resolved = await this.#ask("resolve", (store, key) => store.resolve(key, "released", decision));
    return resolved === "ok" ? "ok" : "lost";
  }

  /** I25: holds the key again when an operator has released it from this attempt, and nobody has had it since. */
  async takeBack(fence: number): Promise<boolean> {
    const released = await this.#ask("readReleased", (store, key) => store.readReleased(key));
    if (released?.decision.fence !== fence) return false;
    const decision = { fence, ...mayHavePaid };
    return (await this.#ask("reopen", (store, key) => store.reopen(key, decision))) === "ok";
  }

  #ask<Answer>(
    step: StoreMethod,
    call: (store: ResolvedKeyOptions["store"], key: string, token: string) => Awaitable<Answer>,
  ): Awaitable<Answer> {
    const { key, token } = this.attempt;
    return askStore(this.#steps[step], () => call(this.options.store, key, token));
  }

  #isOwn(record: IdempotencyRecord | undefined, state: IdempotencyRecord["state"]): boolean {
    return record?.state === state && record.token === this.attempt.token;
  }
}

const firstDelayMs = 100;
const longestDelayMs = 10_000;
const giveUpAfterMs = 3_600_000;

// At most 2,000 claims may be unconfirmed; the next is refused, unsent. Otherwise a store that is down fills the memory, and a claim that
// cannot be given back leaves its key to an operator although nothing ran (I13).
const maxClaims = 2_000;

/** Repeats refused steps in the background. Its timers keep no process alive. */
export class Retries {
  readonly #tasks = new Set<Task>();
  #claims = 0;

  /** Claims under way, or waiting to be given back. */
  get claims(): number {
    return this.#claims;
  }

  /** Takes a place for a claim before it is sent; false without one. */
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

  /** As repeat(), after `delayMs`, without a report. */
  repeatLater(delayMs: number, step: () => Awaitable<boolean>): void {
    setTimeout(() => this.repeat(step, () => {}), delayMs).unref();
  }

  /** Repeats `step` without end until it returns true, then frees the claim's place. Pauses: at most `longestPauseMs` and 10 s. */
  giveBackClaim(longestPauseMs: number, step: () => Awaitable<boolean>): void {
    const counted = async (): Promise<boolean> => {
      const done = await step();
      if (done) this.claimAnswered();
      return done;
    };
    this.#start(counted, () => true, longestPauseMs).hurry();
  }

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

  /** Attempts the step now, unless an attempt is under way. */
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
