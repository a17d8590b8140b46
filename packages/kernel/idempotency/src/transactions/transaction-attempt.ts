import type { TransactionBegun, TransactionClaim } from "./transaction-store.ts";

/** What a handler's steps have in one transaction. */
export interface OpenTransaction<Tx> {
  readonly tx: Tx;
  readonly begun: TransactionBegun;
}

/** How a transaction ended without its steps' result. */
export type NotRun = "nonce-seen" | "in-flight" | "client-left";

export interface TransactionAttempt extends Pick<TransactionClaim, "nonce" | "keys"> {
  readonly req?: object | undefined;
  /** Aborts when the client leaves. */
  readonly left?: AbortSignal | undefined;
  /** Whether no request waits for it: where a transaction holds the event loop, it begins in a part of a turn that others leave to it. */
  readonly isBackground?: boolean | undefined;
}

/** What a handler did behind its savepoint: kept, or undone because of its error. */
export type Behind<T> = { readonly value: T } | { readonly error: unknown };
