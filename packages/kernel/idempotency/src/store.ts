/** A value, or a promise of it: stores of embedded engines answer at once. */
export type Awaitable<T> = T | Promise<T>;

export interface IdempotencyClaim {
  /** Random identity of this attempt: a claim repeated with it never collides with itself. */
  readonly token: string;
  /** Digest of the payload, compared by the guard. At most 128 characters. */
  readonly fingerprint: string;
  /** Milliseconds, by the store's clock, of owning without a heartbeat. Caps the present owner's rest too: give all processes the same. */
  readonly leaseMs: number;
  /** For a key whose lease expired: `hold` it for an operator, or `rerun` with a higher fence. */
  readonly recovery: "hold" | "rerun";
}

export type IdempotencyClaimResult =
  /** The caller owns the key. The fence, a safe integer, grows with each owner of the same key. */
  | { readonly status: "acquired"; readonly fence: number }
  /** A payment for the key has committed. Final until the retention ends. */
  | { readonly status: "done"; readonly fingerprint: string }
  /** Another attempt owns the key, for `remainingMs` more unless it heartbeats. */
  | { readonly status: "in-flight"; readonly fingerprint: string; readonly remainingMs: number }
  /** An operator has to decide: see {@link IdempotencyStore.resolve}. */
  | { readonly status: "held"; readonly fingerprint: string; readonly reason: string };

interface KnownAttempt {
  readonly token: string;
  readonly fence: number;
  readonly fingerprint: string;
  /** With the record's own fence an operator made it done; a lower one is about an earlier attempt. */
  readonly decision?: KeptDecision | undefined;
}

/** A key as the store knows it. `remainingMs` is at most 0 once the lease has expired. */
export type IdempotencyRecord =
  | (KnownAttempt & { readonly state: "running"; readonly remainingMs: number })
  | (KnownAttempt & { readonly state: "done" })
  | (KnownAttempt & { readonly state: "held"; readonly reason: string });

/** A key that an operator decided to free: absent to claims and to {@link IdempotencyStore.read}. */
export interface ReleasedKey {
  readonly state: "free";
  readonly fence: number;
  readonly fingerprint: string;
  readonly decision: KeptDecision;
}

export interface IdempotencyDecision {
  /** The fence of the record read: a decision about one attempt never ends another. */
  readonly fence: number;
  /** Who decides, in 1 to 128 characters, kept as given. */
  readonly by?: string | undefined;
  /** Why, or where that is written, in 1 to 512 characters, kept as given. */
  readonly note?: string | undefined;
}

export interface OperatorEntry {
  /** Integer milliseconds since 1970 by the store's clock. */
  readonly at: number;
  readonly by?: string | undefined;
  readonly note?: string | undefined;
}

/** An operator's last decision about a key. Outlives later attempts, until the record is pruned or decided anew. */
export interface KeptDecision extends OperatorEntry {
  readonly outcome: "done" | "released";
  /** Of the attempt decided about. */
  readonly fence: number;
  /** Why the key was held; {@link leaseExpired} for an expired run. */
  readonly reason: string;
  /** Set when the decision was taken back. */
  readonly reopened?: OperatorEntry | undefined;
}

export interface IdempotencyListQuery {
  readonly state: IdempotencyRecord["state"];
  /** From the page before; undefined for the first. */
  readonly cursor?: string | undefined;
  /** 1 to 1,000: about the most keys of a page. */
  readonly limit: number;
}

/** May be empty although more pages follow. */
export interface IdempotencyListing {
  readonly entries: readonly { readonly key: string; readonly record: IdempotencyRecord }[];
  /** For the next page; undefined after the last. */
  readonly cursor: string | undefined;
}

/** `lost`: the key is not this token's any more; nothing was changed. */
export type IdempotencyOwnership = "ok" | "lost";

/** The recorded reason for a hold because the owner's lease expired. */
export const leaseExpired = "lease-expired";

/**
 * Keeps an idempotency guard's keys. Every method is one atomic step on the engine, and throws, never guesses, when it cannot reach it;
 * leases and retention run on the engine's clock. States: absent -> running -> done; running -> absent by release; running -> held by hold, or at a
 * claim with recovery `hold` after the lease expired; expired running -> running with a higher fence at a claim with recovery `rerun`; held -> done
 * by its owner, or done or absent by resolve; back to held by reopen. A key ends once: what an attempt has done stays.
 */
export interface IdempotencyStore {
  /** One word for metrics and spans, such as `redis`. */
  readonly engine?: string | undefined;
  /** How long a done key is remembered, in milliseconds: later it runs again. Undefined if unknown: nobody can check a minimum. */
  readonly retentionMs?: number | undefined;
  /**
   * True if no other store object reaches these records, as in a process's memory. Keys of any other store can meet those of a guard in
   * another module or process, so that a guard on it requires a scope.
   */
  readonly isPrivate?: boolean | undefined;
  /**
   * Takes the key, or says who has it. The owner's token in state run gives `acquired` with the same fence and a new lease. A lease beyond
   * now plus `leaseMs` is cut to that: the engine's clock was set back, and the owner may be dead. Takes any string of 1 to 512 characters.
   */
  claim(key: string, claim: IdempotencyClaim): Awaitable<IdempotencyClaimResult>;
  /** Reads without changing anything; undefined for a key that is absent or past its retention. */
  read(key: string): Awaitable<IdempotencyRecord | undefined>;
  /** Renews the lease of a run, also an expired one that nobody took. */
  heartbeat(key: string, token: string, leaseMs: number): Awaitable<IdempotencyOwnership>;
  /** running -> done, durable once answered; `ok` again for the same token. Also from held for the owner's token: nobody else has run it. */
  complete(key: string, token: string): Awaitable<IdempotencyOwnership>;
  /** running -> absent, for a run of this token; a done or held key is `lost`. The next fence is still higher. */
  release(key: string, token: string): Awaitable<IdempotencyOwnership>;
  /** running -> held, with a reason of at most 256 characters for the operator. */
  hold(key: string, token: string, reason: string): Awaitable<IdempotencyOwnership>;
  /**
   * Decides, for an operator, about the attempt with this fence: held, or a run with an expired lease. Gives the record a token that nobody
   * has, so that the old attempt cannot end it. Keeps the decision with the hold's reason, as long as a done key, in place of an earlier
   * one. `not-held`: nothing to decide, or another attempt has the key.
   */
  resolve(
    key: string,
    outcome: "done" | "released",
    decision: IdempotencyDecision,
  ): Awaitable<"ok" | "not-held">;
  /**
   * Takes back the decision about the attempt with this fence: the key is held again for its old reason; who reopened it is kept. A token
   * that nobody has and a higher fence keep the old owner, or a decision sent twice, from ending it. `not-decided`: no decision on this
   * fence, a later claim, or an ended retention. Never ok on what an attempt itself has done.
   */
  reopen(key: string, decision: IdempotencyDecision): Awaitable<"ok" | "not-decided">;
  /** An operator's kept decision on a key that `read` calls absent; undefined for every other key. */
  readReleased(key: string): Awaitable<ReleasedKey | undefined>;
  /** Lists the keys in a state by page, for operators. A key in it throughout is listed at least once. Absent if unsupported. */
  list?(query: IdempotencyListQuery): Awaitable<IdempotencyListing>;
  /** Removes done records past their retention, never runs or held keys. Returns how many. */
  prune(): Awaitable<number>;
  /** Frees the store's own timers and connections. Later calls throw. */
  close(): Awaitable<void>;
}
