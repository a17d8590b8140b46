import type { Business, Settings } from "@countersign/example-settings";
import type { Keys } from "@countersign/http-signature-verify";
import { payoutEndpoint, payoutOf, type BusinessQuery } from "@countersign/payout";
import { capturedRawBody } from "@countersign/raw-body";
import type { Request, RequestHandler, Response } from "express";
import type { Logger } from "pino";
import type { Completion } from "./ledgers/database.ts";
import type { Acceptance, PayoutLedger } from "./ledgers/payouts.ts";
import type { GuardStores } from "./engines/storage.ts";

/** What the payout route works with. */
export interface PayoutRouteParts {
  readonly settings: Settings;
  readonly keys: Keys;
  readonly stores: GuardStores;
  readonly ledger: PayoutLedger;
  readonly logger: Logger;
  /** Called after a payout has committed. */
  readonly onAccepted: () => void;
}

/** Everything between the wire and {@link acceptPayout}, in the order of the interface. */
export function payoutGuards({
  settings,
  keys,
  stores,
}: PayoutRouteParts): ReturnType<typeof payoutEndpoint> {
  return payoutEndpoint({
    addresses: { allow: settings.allowedIps },
    signature: { keys, nonces: stores.nonces, pathPrefix: settings.pathPrefix },
    idempotency: { store: stores.idempotency, scope: "payout", recovery: "rerun", leaseMs: 10_000 },
    referenceField: settings.referenceField,
    findBusiness: settings.businesses === undefined ? undefined : businessFinder(settings.businesses),
  });
}

/** Whether an account is the one of a business: an IBAN under another business_id is no match. */
function businessFinder(businesses: readonly Business[]): (query: BusinessQuery) => boolean {
  const known = new Set(businesses.map(({ businessId, iban }) => `${iban} ${businessId}`));
  return ({ businessId, iban }) => known.has(`${iban} ${businessId}`);
}

/**
 * The handler: the payout and, where the store can, the end of its key in one transaction, then 200; a worker does the rest.
 * Otherwise the guard ends the key after the answer, and a payout whose key was not ended comes again: it is acknowledged.
 */
export function acceptPayout({ stores, ledger, logger, onAccepted }: PayoutRouteParts): RequestHandler {
  return async (req: Request, res: Response) => {
    const payout = payoutOf(req);
    const { idempotencyKey, businessId, beneficiary, reference } = payout;
    const { idempotency } = req;
    const instruction = capturedRawBody(req)?.toString("utf8");
    if (idempotency === undefined || instruction === undefined) {
      throw new Error("the payout route runs behind payoutEndpoint");
    }
    const complete: Completion = (transaction) => idempotency.completeIn(transaction);
    const acceptance = await ledger.accept(
      { idempotencyKey, businessId, beneficiary, reference, instruction },
      stores.idempotency.completeIn === undefined ? undefined : complete,
    );
    logAcceptance(logger, acceptance, { idempotencyKey, businessId });
    if (acceptance === "accepted") onAccepted();
    // The interface does not show the body of a 200.
    res.json({ status: "accepted", idempotency_key: idempotencyKey });
  };
}

function logAcceptance(
  logger: Logger,
  acceptance: Acceptance,
  payout: { readonly idempotencyKey: string; readonly businessId: string },
): void {
  if (acceptance === "accepted") logger.info(payout, "payout accepted");
  else if (acceptance === "known") logger.warn(payout, "payout accepted by an earlier attempt");
  // As a paid key that comes with another payload: it is not paid again, and somebody has to look at it.
  else logger.error(payout, "payout accepted by an earlier attempt with another instruction");
}
