import { types } from "node:util";
import { OptionError, type NonceStore } from "@countersign/core";
import {
  hasMethods,
  option,
  optionError,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/internal";
import { keyRules } from "../key-options.ts";
import type { TransactionStore, TransactionStores } from "./transaction-store.ts";

/** How transactions are run for a receiver; given beside its `stores`. */
export interface TransactionOptions {
  /** How long a duplicate waits for an open attempt, and a statement for a lock, in milliseconds. Default 2,000; 0 waits for nobody here. */
  readonly waitMs?: number | undefined;
  /** The longest wait for a connection and the first statement, in milliseconds. Default 2,000. */
  readonly storeTimeoutMs?: number | undefined;
  /** For how long the transaction may stand idle before the engine ends it, in milliseconds. Default 60,000. */
  readonly idleTimeoutMs?: number | undefined;
  /**
   * How long a request waits for its transaction, COMMIT included, in milliseconds. Then the response is 503, and a transaction that has not
   * sent COMMIT by then is rolled back, although its handler may go on. Choose less than your callers wait for a response. Default 10,000.
   */
  readonly transactionTimeoutMs?: number | undefined;
  /** For a key that lease mode has left: `hold`, an operator decides, or `rerun`. Default `hold`. */
  readonly recovery?: "hold" | "rerun" | undefined;
  /** How many duplicates may wait at once in this process; more are 503. Default 1,000. */
  readonly maxWaiters?: number | undefined;
  /** Retry-After of 503 answers, in seconds. Default 5. */
  readonly retryAfterSeconds?: number | undefined;
}

const transactionTable = {
  waitMs: option.integer({ min: 0, max: 60_000, fallback: 2_000 }),
  storeTimeoutMs: keyRules.storeTimeoutMs,
  idleTimeoutMs: option.integer({ min: 100, max: 3_600_000, fallback: 60_000 }),
  transactionTimeoutMs: option.integer({ min: 100, max: 86_400_000, fallback: 10_000 }),
  recovery: keyRules.recovery,
  maxWaiters: option.integer({ min: 0, max: 1_000_000, fallback: 1_000 }),
  retryAfterSeconds: keyRules.retryAfterSeconds,
} satisfies OptionTable<TransactionOptions, unknown>;

/** How a receiver reads the options that it has beside `stores`, and those of its handlers. */
export const transactionOptions = {
  table: transactionTable,
  readStores: readTransactionStores,
  assertNoLeaseOptions,
  assertInMode,
};

export type ResolvedTransactionOptions = ReadOptions<typeof transactionTable>;

/** Throws an OptionError on options that only lease mode has. `unknown option` would not say where they belong. */
function assertNoLeaseOptions(owner: OptionOwner, options: object, names: readonly string[]): void {
  const given = names.find((name) => Reflect.get(options, name) !== undefined);
  if (given === undefined) return;
  throw new OptionError(owner, { option: given, what: "is of lease mode; leave it out beside stores" });
}

/** What connections, pools and ORMs have, or a `Database` of fromPg() and its like; no stores have one of these. */
const databaseMethods = [
  "alone",
  "exec",
  "query",
  "prepare",
  "execute",
  "getConnection",
  "$transaction",
  "transaction",
];

/** Reads the option `stores`. Throws an OptionError that says what to give. */
function readTransactionStores<Tx>(stores: unknown, owner: OptionOwner, name: string): TransactionStores<Tx> {
  if (typeof stores !== "object" || stores === null) {
    throw optionError(owner, name, "stores of your database, for example createStores({ database })", stores);
  }
  const { transactions, nonces }: { transactions?: unknown; nonces?: unknown } = { ...stores };
  const isFit =
    hasMethods<TransactionStore<Tx>>(
      transactions,
      "run",
      "begin",
      "keep",
      "assertOpen",
      "free",
      "hold",
      "faultOf",
    ) && hasMethods<NonceStore>(nonces, "claim");
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it has the methods; what they answer is checked on use
  if (isFit) return stores as TransactionStores<Tx>;
  if (databaseMethods.some((method) => typeof Reflect.get(stores, method) === "function")) {
    const what =
      "is a database and not its stores: write createStores({ database }), of a library with createStores({ database: fromPg(pool) })";
    throw new OptionError(owner, { option: name, what });
  }
  throw new OptionError(owner, {
    option: name,
    what:
      "has no transactions: create it on your own database library, for example " +
      "createStores({ database: fromPg(pool) }), or give a handler and the options of lease mode instead",
  });
}

/**
 * Throws an OptionError for an `async` handler of synchronous transactions: it would write after its transaction. What only returns a promise
 * is found when it runs.
 */
function assertInMode(
  { transactions: { mode } }: { readonly transactions: Pick<TransactionStore<never>, "mode"> },
  handler: unknown,
  owner: OptionOwner,
  name: string,
): void {
  if (mode !== "sync" || !types.isAsyncFunction(handler)) return;
  throw new OptionError(owner, {
    option: name,
    what: "is async, and a transaction on SQLite cannot stay open across an await: write it without async",
  });
}
