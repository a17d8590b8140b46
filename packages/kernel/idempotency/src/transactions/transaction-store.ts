import type { NonceClaim, NonceStore } from "@countersign/core";
import type { ClosedStatements } from "./statement-gate.ts";
import type { Awaitable, IdempotencyClaimResult, IdempotencyStore } from "../store.ts";

/** `sync`: the engine's transactions cannot stay open across an await (SQLite). */
export type TransactionMode = "async" | "sync";

/** Whatever is no promise: a synchronous transaction ends with the function. */
export type NoPromise =
  | (object & { readonly then?: undefined })
  | string
  | number
  | bigint
  | boolean
  | symbol
  | null
  | undefined
  | void;

export interface TransactionKey {
  /** 1 to 512 characters. */
  readonly key: string;
  /** Random identity of this attempt. */
  readonly token: string;
  /** Digest of the payload, at most 128 characters. */
  readonly fingerprint: string;
}

export interface TransactionClaim {
  /** Undefined for what brings none, such as a webhook. */
  readonly nonce?: NonceClaim | undefined;
  /** Different from each other; written in an order that is the same for all processes. None for work whose own row says whose it is. */
  readonly keys: readonly TransactionKey[];
  /** For a run of lease mode whose lease expired: `rerun` takes it over if its own claim said `rerun` too, `hold` leaves it to an operator. */
  readonly recovery: "hold" | "rerun";
  /**
   * For how long a key stays this run's whose row was committed before the transaction's end, in milliseconds: longer than the transaction
   * may take. Then an operator has to decide.
   */
  readonly leaseMs: number;
  /** The longest wait for a lock, in milliseconds, also of the handler's statements. */
  readonly waitMs: number;
  /** For how long the transaction may stand idle, in milliseconds; then the engine ends it, where it can. */
  readonly idleTimeoutMs: number;
}

/**
 * `begun`: written as running by this transaction. The others are as a claim answers; the only one of them that writes is a run whose lease
 * had ended, which is `held` once the transaction commits.
 */
export type KeyBegun =
  | { readonly status: "begun" }
  | Exclude<IdempotencyClaimResult, { readonly status: "acquired" }>;

export interface TransactionBegun {
  /** `seen`: used before, or by a transaction that has committed meanwhile; no key was touched. */
  readonly nonce: "fresh" | "seen";
  /** In the order of the claim; empty after a seen nonce. */
  readonly keys: readonly KeyBegun[];
}

/**
 * What an error means for its transaction. `conflict`: rolled back, or has to be; the whole may run again (40001, 40P01, 1213,
 * SQLITE_BUSY). `locked`: a wait for a lock was too long. `unavailable`: no line, or no server. `refused`: the engine has said no for
 * certain. Undefined: no error of the engine.
 */
export type TransactionFault = "conflict" | "locked" | "unavailable" | "refused";

/** How a transaction waits for its turn, where a store makes transactions wait. */
export interface TransactionTurn {
  /** True if no request waits for it, so that it leaves connections to the transactions of requests. Default false. */
  readonly isBackground?: boolean | undefined;
  /** True once nobody waits for it any more: a transaction whose turn comes then is not opened, and its run() rejects. */
  readonly isGivenUp?: (() => boolean) | undefined;
}

/**
 * Keeps nonces and keys in the transaction that pays. A key is `running` from begin() on, and `done` by keep(), the transaction's last
 * statement: for everybody once it commits. Whatever ends the transaction otherwise leaves the key as it was, and whatever commits a part of
 * it too early leaves a running key (I29). One table with an {@link IdempotencyStore}: either mode honours the
 * other's records.
 */
export interface TransactionStore<Tx, Mode extends TransactionMode = TransactionMode> {
  /** One word for metrics and spans, such as `postgresql`. */
  readonly engine: string;
  readonly mode: Mode;
  /** How long a done key is remembered, in milliseconds. */
  readonly retentionMs: number;
  /** What its transactions are of, such as the option `database`: stores of answers on the same one can write in them. */
  readonly database?: object | undefined;
  /**
   * Runs `work` in a transaction; resolves to its result after COMMIT, rolls back and rejects with its error when it throws. Rejects with a
   * GuardError (`transaction-broken`) when COMMIT was answered, and for certain has not committed. With mode `sync`, `work` must return no
   * promise. The first call proves that the transaction is one, and rejects with a TypeError otherwise.
   */
  run<T>(work: (tx: Tx) => Awaitable<T>, turn?: TransactionTurn): Promise<T>;
  /** Why a transaction may be waiting before it begins, for an error's message. Undefined if the store makes none wait. */
  whyWaiting?(): string | undefined;
  /**
   * Claims the nonce, then the keys, in one call. Waits for open transactions at most `waitMs`.
   */
  begin(tx: Tx, claim: TransactionClaim): Awaitable<TransactionBegun>;
  /** Called before a handler runs: lets its statements through, and counts from here what it writes. */
  openGate?(tx: Tx): void;
  /**
   * The handler has settled: sends what it has left to the library (only if it has `succeeded`), rejects every later statement of it, and
   * waits for the answers of those that were sent before: with mode `sync` there are none, and it returns undefined.
   */
  closeGate?(tx: Tx, succeeded: boolean): Promise<ClosedStatements> | undefined;
  /**
   * The last statement after a handler: makes exactly these keys done, each by its token and state, in the transaction that has begun them.
   * `more`: another handler follows in this transaction. Throws a GuardError (`transaction-broken`) when the transaction cannot commit what
   * the handler wrote: it swallowed an error, or ended the transaction. No key is free then whose handler may have committed something, as
   * after a ROLLBACK of its own.
   */
  keep(tx: Tx, keys: readonly TransactionKey[], more: boolean): Awaitable<void>;
  /**
   * After a handler that failed, before the rollback: throws a GuardError (`transaction-broken`), and holds its keys, when the handler has
   * ended the transaction itself, so that it may have written something that no rollback undoes.
   */
  assertOpen(tx: Tx, keys: readonly TransactionKey[]): Awaitable<void>;
  /** Frees keys that were begun in this transaction and whose handlers did not run. */
  free(tx: Tx, keys: readonly TransactionKey[]): Awaitable<void>;
  /**
   * Writes as `held`, for this reason, each key that has this run's token and is not free. Without `tx` in a transaction of its own, after a
   * run that was rolled back: then something of the run has committed, such as by its own COMMIT or a change of a table's definition. A key
   * that has committed as done stays so: all that paid it has committed with it. Resolves to the keys that have this run's token.
   */
  hold(keys: readonly TransactionKey[], reason: string, tx?: Tx): Awaitable<ReadonlySet<string>>;
  /**
   * Of mode `sync`: the handler of these keys has returned a promise, so that it goes on after the transaction, which run() rolls back. It
   * holds these keys, and without this call all that were begun and neither kept nor freed. Must not throw.
   */
  outlived?(tx: Tx, keys: readonly TransactionKey[]): void;
  /**
   * How many changes the engine has seen since the handler of these keys began: rows, or commands that may change rows. Undefined where it
   * does not count. Asked after the handler, and only where no driver has reported a change.
   */
  written?(tx: Tx, keys: readonly TransactionKey[]): Awaitable<number | undefined>;
  faultOf(error: unknown): TransactionFault | undefined;
}

/** Stores with transactions, as `payoutEndpoint({ stores, pay })` takes them. */
export interface TransactionStores<Tx, Mode extends TransactionMode = TransactionMode> {
  /** On the same tables, for operators and lease mode. */
  readonly idempotency: IdempotencyStore;
  /** Claims the nonce of a verified request that is refused before its transaction begins. */
  readonly nonces: NonceStore;
  readonly transactions: TransactionStore<Tx, Mode>;
}
