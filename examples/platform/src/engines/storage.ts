import type { NonceStore } from "@countersign/http-signature-verify";
import type { IdempotencyStore, TransactionStores } from "@countersign/idempotency";
import type { WorkStores } from "@countersign/idempotency/work";
import type { LedgerDatabase } from "../ledgers/database.ts";

/** What the guards remember in: the ledgers' database, or a store that shares no transaction with it. */
export type GuardStores = TransactionStores<object> | LeaseStores;

interface LeaseStores {
  readonly idempotency: IdempotencyStore;
  readonly nonces: NonceStore;
  readonly transactions?: undefined;
}

/** Everything that outlives a process. */
export interface PlatformStorage {
  readonly stores: GuardStores;
  /** Tasks, in the ledgers' database. */
  readonly work: WorkStores<object>;
  readonly database: LedgerDatabase;
  /** Ends the stores and their connections. To be called when nothing uses them any more. */
  close(): Promise<void>;
}
