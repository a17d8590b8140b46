import type { NonceClaim, NonceStore } from "@countersign/core";
import type { TransactionStore } from "@countersign/idempotency";
import type { TableStore } from "@countersign/idempotency/store";
import type { NewTask, OwnedTask, TaskAdded, WorkStore, WorkStores } from "@countersign/idempotency/work";
import type { NewestMark } from "@countersign/idempotency/work/store";

/** The nonce store of the verifier, which removes what has expired. */
export interface ServerNonceStore extends NonceStore {
  claim(claim: NonceClaim): Promise<"fresh" | "seen">;
  /** Removes the nonces whose retention has ended. Returns how many. */
  prune(): Promise<number>;
  /** Ends the pruning timer. A later call throws. */
  close(): void;
}

/** Stores on a server, in lease mode. */
export interface PoolStores {
  /** `list` pages in the order in which the engine sorts the keys, and rejects with a TypeError on a damaged cursor. */
  readonly idempotency: TableStore<"async">;
  readonly nonces: ServerNonceStore;
  /** Resolves when server and tables are as the stores need them; rejects with the remedy. Without it the first step checks, and throws. */
  ready(this: void): Promise<void>;
  /** Closes the stores; your pool or library stays open. */
  close(this: void): void;
}

/** Tasks on a server. */
export interface ServerWorkStore<Tx> extends WorkStore<Tx, "async"> {
  add(tx: Tx, queue: string, tasks: readonly NewTask[]): Promise<readonly TaskAdded[]>;
  finish(tx: Tx, task: OwnedTask): Promise<boolean>;
  advance(tx: Tx, mark: NewestMark): Promise<boolean>;
}

/** Stores on a server, by your own database library. */
export interface Stores<Tx> extends PoolStores, WorkStores<Tx, "async"> {
  readonly idempotency: TableStore<"async">;
  readonly nonces: ServerNonceStore;
  /** Key, nonce and payment in one transaction of your own library. */
  readonly transactions: TransactionStore<Tx, "async">;
  /** Tasks that commit with what caused them. */
  readonly work: ServerWorkStore<Tx>;
}
