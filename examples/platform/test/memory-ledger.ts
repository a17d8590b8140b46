import { openStore, type OpenedStore } from "../src/database.ts";
import { createOutbox, type Outbox } from "../src/outbox.ts";
import { createPartyLedger, type PartyLedger } from "../src/party-ledger.ts";
import { createPayoutLedger, type AcceptedPayout, type PayoutLedger } from "../src/payout-ledger.ts";

export interface MemoryLedger extends OpenedStore {
  readonly outbox: Outbox;
  readonly ledger: PayoutLedger;
  readonly parties: PartyLedger;
  now: number;
  close(): void;
}

/** Ledgers in memory, on a clock that stands still until a test moves it. */
export function memoryLedger(): MemoryLedger {
  const { database, stores } = openStore({ kind: "memory" });
  const outbox = createOutbox(database);
  const opened: MemoryLedger = {
    database,
    stores,
    outbox,
    parties: createPartyLedger(database),
    now: 1_000,
    ledger: createPayoutLedger(database, outbox, () => opened.now),
    close() {
      stores.close();
      database.close();
    },
  };
  return opened;
}

export function payout(idempotencyKey: string, name = "Example Trading GmbH"): AcceptedPayout {
  return {
    idempotencyKey,
    businessId: "b-1",
    beneficiary: { iban: "DE89370400440532013000", bic: "COBADEFFXXX", name },
    reference: "invoice 7",
    instruction: '{"amount":{"value":10.10}}',
  };
}
