import type { IdempotencyStore } from "@countersign/idempotency-guard";
import type { NonceStore } from "@countersign/http-signature-verify";
import { payoutEndpoint, payoutOf, type BusinessQuery } from "@countersign/payout";
import { capturedRawBody } from "@countersign/raw-body";
import type { SqliteTransaction } from "@countersign/store-sqlite";
import type { Request, RequestHandler, Response } from "express";
import type { Logger } from "pino";
import type { PayoutLedger } from "./payout-ledger.ts";
import type { Business } from "./setting-files.ts";
import type { Settings } from "./settings.ts";

/** What the guards of the payout route remember in. */
interface PayoutStores {
  readonly idempotency: IdempotencyStore<SqliteTransaction>;
  readonly nonces: NonceStore;
}

/** What the payout route works with. */
export interface PayoutRouteParts {
  readonly settings: Settings;
  readonly stores: PayoutStores;
  readonly ledger: PayoutLedger;
  readonly logger: Logger;
  /** Called after a payout has committed. */
  readonly onAccepted: () => void;
}

/** Everything between the wire and {@link acceptPayout}, in the order of the interface. */
export function payoutGuards({ settings, stores }: PayoutRouteParts): ReturnType<typeof payoutEndpoint> {
  return payoutEndpoint({
    keys: settings.keys,
    nonces: stores.nonces,
    allowIps: settings.allowedIps,
    store: stores.idempotency,
    pathPrefix: settings.pathPrefix,
    referenceField: settings.referenceField,
    findBusiness: settings.businesses === undefined ? undefined : businessFinder(settings.businesses),
    // An attempt that died has left nothing behind: the handler completes the key in its own transaction.
    recovery: "rerun",
    // Accepting takes milliseconds; this is how long a key is in doubt after a crash.
    leaseMs: 10_000,
  });
}

/** Whether an account is the one of a business: an IBAN under another business_id is no match. */
function businessFinder(businesses: readonly Business[]): (query: BusinessQuery) => boolean {
  const known = new Set(businesses.map(({ businessId, iban }) => `${iban} ${businessId}`));
  return ({ businessId, iban }) => known.has(`${iban} ${businessId}`);
}

/** The handler: the payout and the end of its key in one transaction, then 200; a worker does the rest. */
export function acceptPayout({ ledger, logger, onAccepted }: PayoutRouteParts): RequestHandler {
  return (req: Request, res: Response) => {
    const payout = payoutOf(req);
    const { idempotencyKey, businessId, beneficiary, reference } = payout;
    const { idempotency } = req;
    const instruction = capturedRawBody(req)?.toString("utf8");
    if (idempotency === undefined || instruction === undefined) {
      throw new Error("the payout route runs behind payoutEndpoint");
    }
    ledger.accept({ idempotencyKey, businessId, beneficiary, reference, instruction }, (transaction) =>
      idempotency.completeIn(transaction),
    );
    logger.info({ idempotencyKey, businessId }, "payout accepted");
    onAccepted();
    // The interface does not show the body of a 200.
    res.json({ status: "accepted", idempotency_key: idempotencyKey });
  };
}
