import type { AnswerStore, IdempotencyStore } from "@countersign/idempotency";
import type { NonceStore } from "@countersign/http-signature-verify";
import type { Express } from "express";

/** Where a payer keeps its keys and nonces; and `payouts`, the file of the bank that it calls in lease mode. */
export type EngineConfig =
  | { readonly kind: "memory"; readonly payouts: string; readonly max?: number }
  | {
      readonly kind: "sqlite";
      readonly file: string;
      readonly payouts: string;
      readonly maxPages?: number;
      readonly retentionMs?: number;
    }
  | { readonly kind: "redis"; readonly url: string; readonly prefix: string; readonly payouts: string }
  | {
      readonly kind: "postgres";
      readonly url: string;
      readonly schema: string;
      readonly payouts: string;
      readonly retentionMs?: number;
    }
  /** A database of its own. Only for payers with a `publicKey`. */
  | { readonly kind: "mysql"; readonly url: string };

export type EngineKind = EngineConfig["kind"];

/**
 * `handler`: the key is claimed, nothing is begun. `before commit`: the bank has written the payout, and not committed it. `after commit`:
 * the payout is made. `before keep`, `kept`: around the keeping of an answer that is
 * to be given again. `recorded`: the key is done in the store, the answer is not sent yet.
 */
export type Point =
  | "handler"
  | "before commit"
  | "after commit"
  | "before keep"
  | "kept"
  | "recorded"
  | TransactionPoint;

/**
 * Where the handler gets the transaction. `begun`: nonce and key are written. `in pay`: the payout too. `savepoint released`: before
 * COMMIT. `committed`: before the answer.
 */
export type TransactionPoint = "before BEGIN" | "begun" | "in pay" | "savepoint released" | "committed";

export interface Points {
  /** Waits when the point is armed. */
  reach(point: Point): Promise<void>;
  /** For synchronous code: blocks the process for good when the point is armed. */
  block(point: Point): void;
}

/** Everything about a payer that a process of its own can be told. */
export interface PayerConfig {
  readonly engine: EngineConfig;
  readonly times?:
    | Readonly<Partial<typeof usualTimes & { idleTimeoutMs: number; transactionTimeoutMs: number }>>
    | undefined;
  /** With it, payouts are signed by its private key, and their handler gets the transaction. PEM. */
  readonly publicKey?: string | undefined;
  /** Default `rerun`. */
  readonly recovery?: "hold" | "rerun" | undefined;
  /** After so many milliseconds a time-out middleware before the guard answers 503. Default never. */
  readonly answerAfterMs?: number | undefined;
  /** Whether the first answer is given again for a done key. Default false. */
  readonly givesAgain?: boolean | undefined;
}

export interface Payer {
  readonly app: Express;
  readonly engine: {
    readonly stores: { readonly idempotency: IdempotencyStore; readonly nonces: NonceStore };
  };
  /** Undefined where no answer is given again. */
  readonly answers: AnswerStore | undefined;
  close(): void | Promise<void>;
}

export const usualTimes: {
  readonly leaseMs: number;
  readonly waitMs: number;
  readonly pollMs: number;
  readonly storeTimeoutMs: number;
};

export function createPayer(
  config: PayerConfig,
  parts: {
    readonly points: Points;
    readonly wrapStore?: ((store: IdempotencyStore) => IdempotencyStore) | undefined;
    readonly now?: (() => number) | undefined;
  },
): Promise<Payer>;
