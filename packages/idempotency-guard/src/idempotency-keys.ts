import { assertKnownOptions, integerOption } from "@countersign/guard";
import { acquire, type KeyRefusal } from "./acquire.ts";
import { readRecord } from "./call-store.ts";
import { drain, type DrainOptions, type DrainReport } from "./drain.ts";
import type { KeyAttempt, KeyState } from "./key-attempt.ts";
import { resolveKeyOptions, type IdempotencyKeysOptions, type ResolvedKeyOptions } from "./key-options.ts";
import { Heartbeats } from "./lease.ts";
import { alarm, type KeyNotice } from "./notices.ts";
import type { OwnedKey } from "./owned-key.ts";
import { Retries } from "./retries.ts";
import type { Awaitable, IdempotencyRecord } from "./store.ts";

const knownOptions: readonly (keyof IdempotencyKeysOptions)[] = [
  "factory",
  "store",
  "leaseMs",
  "storeTimeoutMs",
  "recovery",
  "handlerTimeoutMs",
  "retryAfterSeconds",
  "onSettled",
];

/**
 * Owns keys of an idempotency store on behalf of a receiver of anything: leases with heartbeats, claims whose answer was
 * lost, completion that is checked and repeated, release that is repeated. For authors of receivers: idempotencyGuard() is
 * one, for requests. Throws a TypeError on a bad option.
 */
export function idempotencyKeys(options: IdempotencyKeysOptions): IdempotencyKeys {
  assertKnownOptions(options.factory, options, knownOptions);
  return new IdempotencyKeys(resolveKeyOptions(options));
}

/** Made by {@link idempotencyKeys}. */
export class IdempotencyKeys {
  readonly #state: KeyState;

  constructor(options: ResolvedKeyOptions) {
    this.#state = {
      options,
      heartbeats: new Heartbeats(options.leaseMs),
      retries: new Retries(),
      inDoubt: { status: 503, retryAfterSeconds: options.retryAfterSeconds },
      ownedKeys: 0,
      draining: false,
    };
  }

  /**
   * Claims the key: owned (`acquired`), or who has it. Settle an owned key with exactly one of complete(), release() and
   * hold(); until then its lease is renewed. Throws a GuardError (503, `idempotency-store-unavailable`) when the store does
   * not answer in time, and sees to it that no claim is left behind. A promise only when the store gives one.
   */
  acquire(attempt: KeyAttempt): Awaitable<OwnedKey | KeyRefusal> {
    return acquire(this.#state, attempt);
  }

  /**
   * For a process that is about to end: claims no key from here on (503, `draining`), and waits until every key that it owns is
   * settled and recorded. Steps that the store refused are repeated at once and often. Resolves to what is left after `timeoutMs`
   * (1 to 3,600,000, default 10,000): what runs then is left to recovery. Rejects with a TypeError on another time-out. Keeps the
   * process alive meanwhile.
   */
  async drain(options: DrainOptions = {}): Promise<DrainReport> {
    const { factory } = this.#state.options;
    assertKnownOptions(`${factory}: drain`, options, ["timeoutMs"]);
    const range = { min: 1, max: 3_600_000, fallback: 10_000 };
    return drain(this.#state, integerOption(`${factory}: drain`, "timeoutMs", options.timeoutMs, range));
  }

  /** What the store knows about a key; throws, or rejects with, whatever the store does, and when it is too slow. */
  read(key: string): Awaitable<IdempotencyRecord | undefined> {
    return readRecord(this.#state.options, key);
  }

  /** Publishes on `countersign:notice` what an operator should know about a key; a process warning when nobody subscribes. */
  alarm(event: KeyNotice): void {
    alarm(this.#state.options.factory, event);
  }
}
