import type { NonceStore } from "@countersign/http-signature-verify";
import type { IdempotencyStore } from "@countersign/idempotency";
import type { LedgerDatabase } from "../ledgers/database.ts";
import { outboxOn, type Outbox } from "../ledgers/outbox.ts";
import { partyLedgerOn, type PartyLedger } from "../ledgers/parties.ts";
import { payoutLedgerOn, type PayoutLedger } from "../ledgers/payouts.ts";

/** What the guards remember in. */
export interface GuardStores {
  /** Without completeIn(), it shares no transaction with the ledgers. */
  readonly idempotency: IdempotencyStore;
  readonly nonces: NonceStore;
}

/** The platform's own records. */
export interface Ledgers {
  readonly ledger: PayoutLedger;
  readonly parties: PartyLedger;
  readonly outbox: Outbox;
}

/** Everything that outlives a process. */
export interface PlatformStorage extends Ledgers {
  readonly stores: GuardStores;
  /** Ends the stores and their connections. To be called when nothing uses them any more. */
  close(): Promise<void>;
}

export function ledgersOn(database: LedgerDatabase): Ledgers {
  return {
    ledger: payoutLedgerOn(database),
    parties: partyLedgerOn(database),
    outbox: outboxOn(database),
  };
}
