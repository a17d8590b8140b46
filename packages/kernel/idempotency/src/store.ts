/** A value, or a promise of it: stores of embedded engines answer at once. */
export type Awaitable<T> = T | Promise<T>;

/** What a claim says about itself. */
export interface IdempotencyClaim {
  /** Random identity of this attempt. A claim that is repeated with the same token never collides with itself. */
  readonly token: string;
  /** Digest of the payload, compared by the guard, only kept by the store. At most 128 characters. */
  readonly fingerprint: string;
  /**
   * For how long the attempt owns the key without a heartbeat, in milliseconds on the store's clock. Also the most that a claim
   * leaves to the present owner, so give all processes the same.
   */
  readonly leaseMs: number;
  /** What happens to a key whose owner's lease has expired: `hold` it for an operator, or `rerun` with a higher fence. */
  readonly recovery: "hold" | "rerun";
}

/** The answer to a claim. */
export type IdempotencyClaimResult =
  /** The caller owns the key. The fence, a safe integer, grows with each owner of the same key. */
  | { readonly status: "acquired"; readonly fence: number }
  /** A payment for the key has committed. Terminal until the retention ends. */
  | { readonly status: "done"; readonly fingerprint: string }
  /** Another attempt owns the key, for `remainingMs` more milliseconds unless it heartbeats. */
  | { readonly status: "in-flight"; readonly fingerprint: string; readonly remainingMs: number }
  /** An operator has to decide: see {@link IdempotencyStore.resolve}. */
  | { readonly status: "held"; readonly fingerprint: string; readonly reason: string };

interface KnownAttempt {
  readonly token: string;
  readonly fence: number;
  readonly fingerprint: string;
  /** With the record's own fence: an operator made it done. With a lower one: about an earlier attempt. */
  readonly decision?: KeptDecision | undefined;
}

/** What the store knows about a key, for waiting, checking and operating. `remainingMs` is at most 0 when the lease has expired. */
export type IdempotencyRecord =
  | (KnownAttempt & { readonly state: "run"; readonly remainingMs: number })
  | (KnownAttempt & { readonly state: "done" })
  | (KnownAttempt & { readonly state: "held"; readonly reason: string });

/** A key that an operator has decided about, and that is free now: absent to claims and to {@link IdempotencyStore.read}. */
export interface ReleasedKey {
  readonly state: "free";
  readonly fence: number;
  readonly fingerprint: string;
  readonly decision: KeptDecision;
}

/** What an operator has looked at before deciding, and who decides. */
export interface IdempotencyDecision {
  /** The fence of the record that was read: a decision about one attempt never ends another one. */
  readonly fence: number;
  /** Who decides, in 1 to 128 characters. Kept as given. */
  readonly by?: string | undefined;
  /** Why, or where that is written, in 1 to 512 characters. Kept as given. */
  readonly note?: string | undefined;
}

/** When an operator did something, by whom and why. */
export interface OperatorEntry {
  /** Milliseconds since 1970 by the store's clock, an integer. */
  readonly at: number;
  readonly by?: string | undefined;
  readonly note?: string | undefined;
}

/** An operator's last decision about a key. It outlives later attempts, until the record is pruned or decided about anew. */
export interface KeptDecision extends OperatorEntry {
  readonly outcome: "done" | "released";
  /** Of the attempt that was decided about. */
  readonly fence: number;
  /** Why the key was held; {@link leaseExpired} of a run whose lease had expired. */
  readonly reason: string;
  /** The decision was taken back. */
  readonly reopened?: OperatorEntry | undefined;
}

/** Which keys an operator wants to see. */
export interface IdempotencyListQuery {
  readonly state: IdempotencyRecord["state"];
  /** The cursor of the page before; undefined for the first one. */
  readonly cursor?: string | undefined;
  /** 1 to 1,000: about how many keys a page has at most. */
  readonly limit: number;
}

/** A page of keys. It may be empty although more follow. */
export interface IdempotencyListing {
  readonly entries: readonly { readonly key: string; readonly record: IdempotencyRecord }[];
  /** For the next page; undefined after the last one. */
  readonly cursor: string | undefined;
}

/** `lost`: the key is not this token's any more, and nothing was changed. */
export type IdempotencyOwnership = "ok" | "lost";

/** The reason that a store records when it holds a key because its owner's lease expired. */
export const leaseExpired = "lease-expired";

/**
 * Where an idempotency guard keeps its keys. Every method is one atomic step on the engine; leases and retention run on the
 * engine's own clock. States: absent -> run -> done; run -> absent by release; run -> held by hold, or at a claim with
 * recovery `hold` after the lease expired; expired run -> run with a higher fence at a claim with recovery `rerun`;
 * held -> done by its owner, or done or absent by resolve; back to held by reopen. A key is ended once: what an attempt has done
 * stays as it is. A method that cannot reach the engine throws; it never guesses.
 */
export interface IdempotencyStore<Tx = never> {
  /** What it stands on, in a word such as `redis`, for metrics and spans. */
  readonly engine?: string | undefined;
  /**
   * For how long a done key is remembered, in milliseconds: a key that comes again later runs again. Undefined when the store
   * does not know; who needs a minimum can then not check it.
   */
  readonly retentionMs?: number | undefined;
  /**
   * Takes the key, or says who has it. With the token of the present owner in state run: `acquired` with the same fence,
   * and the lease begins anew. A lease that ends later than now plus `leaseMs` ends then: the engine's clock was set back, and
   * the owner may be dead. Stored as given: the store must take any string of 1 to 512 characters.
   */
  claim(key: string, claim: IdempotencyClaim): Awaitable<IdempotencyClaimResult>;
  /** Reads without changing anything; undefined when the key is absent or its retention has ended. */
  read(key: string): Awaitable<IdempotencyRecord | undefined>;
  /** Begins the lease of a run anew, also one that expired and that nobody took. */
  heartbeat(key: string, token: string, leaseMs: number): Awaitable<IdempotencyOwnership>;
  /**
   * run -> done, durable when it answers. Also from held, as long as the token is the owner's: nobody else has run it.
   * Repeated with the same token it is `ok` again.
   */
  complete(key: string, token: string): Awaitable<IdempotencyOwnership>;
  /** run -> absent. Only a run of this token; a done or held key is `lost`. The next fence is still higher. */
  release(key: string, token: string): Awaitable<IdempotencyOwnership>;
  /** run -> held, with a reason of at most 256 characters for the operator. */
  hold(key: string, token: string, reason: string): Awaitable<IdempotencyOwnership>;
  /**
   * An operator's decision on the attempt with this fence, which is held or a run whose lease has expired. Takes the key from its
   * owner: the record gets a token that nobody has, so that nothing of the old attempt can end it any more. The decision is kept
   * with the hold's own reason, for as long as a done key is remembered, in place of an earlier one. `not-held`: nothing to
   * decide, or another attempt has the key.
   */
  resolve(
    key: string,
    outcome: "done" | "released",
    decision: IdempotencyDecision,
  ): Awaitable<"ok" | "not-held">;
  /**
   * Takes the decision about the attempt with this fence back: the key is held again, for the reason that it was held for, and
   * who reopened it is kept beside the decision. The record gets a token that nobody has and a higher fence, so that neither the
   * old owner nor a decision that is sent twice can end it. `not-decided`: no operator has decided about this fence, an attempt
   * has claimed the key since, or its retention has ended. Never ok on what an attempt itself has done.
   */
  reopen(key: string, decision: IdempotencyDecision): Awaitable<"ok" | "not-decided">;
  /** What is kept of an operator's decision on a key that `read` calls absent; undefined for every other key. */
  readReleased(key: string): Awaitable<ReleasedKey | undefined>;
  /**
   * The keys in a state, page by page, for an operator. Every key that is in the state from the first page to the last is
   * listed, at least once; what changes in the meantime may be listed or not. Absent on stores that cannot list.
   */
  list?(query: IdempotencyListQuery): Awaitable<IdempotencyListing>;
  /** Removes done records past their retention, never a run or a held key. Returns how many. */
  prune(): Awaitable<number>;
  /** Frees timers and connections of the store itself. A later call throws. */
  close(): Awaitable<void>;
  /**
   * `complete` as part of the caller's own transaction: checks the token under a lock, then writes done. It becomes
   * visible when `tx` commits. On a key that is done it is `lost`, whoever did it: a transaction that is repeated because the
   * reply to COMMIT was lost would pay again. Whose commit it was tells `read`, from outside. The lock lasts as long as `tx`: a
   * claim, release, hold or resolve of the key in the meantime waits for its end or fails, so that what follows a rollback never
   * overtakes a commit. Throws on a `tx` without an open transaction. Absent on engines without transactions.
   */
  completeIn?(tx: Tx, key: string, token: string): Awaitable<IdempotencyOwnership>;
}
