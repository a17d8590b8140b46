import type { NonceStore } from "@countersign/core";
import type { AnswerStore, Awaitable, IdempotencyStore, TransactionStores } from "@countersign/idempotency";
import type { WorkStores } from "@countersign/idempotency/work";

/** One rule of the contract. It holds when `run` resolves. */
export interface ContractCase {
  /** The rule, as a sentence. Unique within a contract. */
  readonly name: string;
  /** Makes a store of its own, checks the rule and closes it. Rejects with what was broken; ends within a minute. */
  readonly run: () => Promise<void>;
  /** Why the rule cannot be checked here: what {@link ContractOptions.without} declares as missing. */
  readonly skipped?: string | undefined;
}

/**
 * What a rule needs of the harness (`clock`: `advance`, `durability`: `engine.durable`) or of the store (`retention`: `retentionMs`;
 * `waiting`: transactions of mode `async`, in which another one can wait).
 */
export type ContractFacility =
  | "clock"
  | "another"
  | "fill"
  | "engine"
  | "durability"
  | "transaction"
  | "swallow"
  | "waiting"
  | "retention"
  | "list"
  | "prune"
  | "close";

export interface ContractOptions {
  /** What neither harness nor store has: the cases that need it are skipped. Default nothing: an unmet need fails rather than hides. */
  readonly without?: readonly ContractFacility[] | undefined;
}

export interface IdempotencyContractOptions extends ContractOptions {
  /** From which the histories of steps are made: give the one that a failure names. Default a random one. */
  readonly seed?: number | undefined;
  /** How many histories of some 30 steps are tried. Default 60, which takes about as long as all other cases. */
  readonly histories?: number | undefined;
}

export interface EngineHarness {
  /** Ends the server; resolves when it serves nobody any more. */
  stop(): Awaitable<void>;
  /** Starts it again on the same address and data; resolves when it accepts connections. */
  start(): Awaitable<void>;
  /** Whether it has everything again that it had answered before `stop`. */
  readonly durable: boolean;
  /** Within how many milliseconds each call must be rejected while the engine is stopped. Default 5,000. */
  readonly rejectsWithinMs?: number | undefined;
  /** Within how many milliseconds of `start` the store must have found it again. Default 10,000. */
  readonly recoversWithinMs?: number | undefined;
}

/** An empty store that nobody else uses, and what a case may do around it. Made anew for each case. */
export interface StoreHarness<Store> {
  readonly store: Store;
  /** Moves the store's injected clock by exactly `ms`; below 0, back. It begins in this century. Without it the cases wait. */
  advance?(ms: number): Awaitable<void>;
  /** One more store on the same data, with a connection of its own, as another process has it. `close` closes it too. */
  another?(): Awaitable<Store>;
  /** Leaves the engine no room for one more key or nonce, and keeps what is there. */
  fill?(): Awaitable<void>;
  readonly engine?: EngineHarness | undefined;
  /** Closes the store, also one that a case has closed, and removes its data. */
  close(): Awaitable<void>;
}

export type IdempotencyStoreHarness = StoreHarness<IdempotencyStore>;

/** A nonce store, with what a store on an engine usually has besides. */
export interface ContractNonceStore extends NonceStore {
  /** Removes nonces whose retention has ended. Returns how many. */
  prune?(): Awaitable<number>;
  /** A later call throws. */
  close?(): Awaitable<void>;
}

export type NonceStoreHarness = StoreHarness<ContractNonceStore>;

/** What `makeStore` of the contract of answers returns. */
export interface AnswerStoreHarness<Tx = never> extends StoreHarness<AnswerStore<Tx>> {
  /**
   * Begins a transaction, awaits `work`, and commits; when `work` throws, rolls back and throws the same. `work` may await. A case uses
   * `tx` again after its transaction.
   */
  transaction?(work: (tx: Tx) => Awaitable<void>): Awaitable<void>;
}

/**
 * What `makeStore` of the contract of transactions returns, with a table of the test in which a handler writes. Of `mode` `sync` all that
 * has a `tx` answers without a promise. An `async` store has two connections or more.
 */
export interface TransactionStoreHarness<Tx> extends StoreHarness<TransactionStores<Tx>> {
  /** Writes a row with this id in the transaction. Fails as the engine does when a row has it. */
  write(tx: Tx, id: string): Awaitable<unknown>;
  /** The ids of all rows that have committed, in any order; asked while no transaction is open. */
  written(): Awaitable<readonly string[]>;
  /** Sends this statement, as a handler that ends our transaction, past whatever keeps a handler's `tx` from it. */
  end(tx: Tx, statement: "COMMIT" | "ROLLBACK"): Awaitable<unknown>;
  /** Leaves the transaction as a handler that has swallowed an error after which this engine cannot commit what was written. */
  swallow?(tx: Tx): Awaitable<unknown>;
}

/** What `makeStore` of the contract of work returns. Done tasks are kept for the default of seven days. */
export interface WorkStoreHarness<Tx>
  extends StoreHarness<WorkStores<Tx>>, Pick<TransactionStoreHarness<Tx>, "write" | "written"> {}

/** What `makeStore` of each contract returns. */
export interface StoreHarnesses<Tx = never> {
  readonly answers: AnswerStoreHarness<Tx>;
  readonly idempotency: IdempotencyStoreHarness;
  readonly nonces: NonceStoreHarness;
  readonly transactions: TransactionStoreHarness<Tx>;
  readonly work: WorkStoreHarness<Tx>;
}
