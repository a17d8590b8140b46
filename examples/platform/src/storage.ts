import type { NonceStore } from "@countersign/http-signature-verify";
import type { IdempotencyStore } from "@countersign/idempotency-guard";
import type { Outbox } from "./outbox.ts";
import type { PartyLedger } from "./party-ledger.ts";
import type { PayoutLedger } from "./payout-ledger.ts";

/** What the guards remember in. */
export interface GuardStores {
  /** Without completeIn(), it shares no transaction with the ledgers. */
  readonly idempotency: IdempotencyStore;
  readonly nonces: NonceStore;
}

/** Everything that outlives a process. */
export interface PlatformStorage {
  readonly stores: GuardStores;
  readonly ledger: PayoutLedger;
  readonly parties: PartyLedger;
  readonly outbox: Outbox;
  /** Ends the stores and their connections. To be called when nothing uses them any more. */
  close(): Promise<void>;
}
