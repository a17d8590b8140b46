import type { Business, Settings } from "@countersign/example-settings";
import type { Keys } from "@countersign/http-signature-verify";
import type { Outcomes } from "countersign/outcomes";
import {
  payoutEndpoint,
  payoutOf,
  refuse,
  type BusinessQuery,
  type DrainableMiddleware,
  type Payout,
} from "countersign/payout";
import type { RequestHandler } from "express";
import type { Logger } from "pino";
import type { PayoutLedger } from "./ledgers/payouts.ts";
import type { GuardStores } from "./engines/storage.ts";

/** What the payout route works with. */
export interface PayoutRouteParts {
  readonly settings: Settings;
  readonly keys: Keys;
  readonly stores: GuardStores;
  readonly ledger: PayoutLedger;
  /** Undefined: none is expected. */
  readonly outcomes: Outcomes<object> | undefined;
  readonly logger: Logger;
}

/**
 * Every check of a payout, and its payment: one transaction with the payout's key and nonce. Where these are in Redis, which shares no
 * transaction with the ledger, {@link acceptPayout} has to follow.
 */
export function receivePayouts(parts: PayoutRouteParts): DrainableMiddleware {
  const { settings, keys, stores, ledger, outcomes } = parts;
  const { pathPrefix, referenceField, businesses } = settings;
  const checks = {
    addresses: { allow: settings.allowedIps },
    referenceField,
    findBusiness: businesses === undefined ? undefined : businessFinder(businesses),
  };
  if (stores.transactions === undefined) {
    const { idempotency: store, nonces } = stores;
    const idempotency = { store, scope: "payout", recovery: "rerun", leaseMs: 10_000 } as const;
    return payoutEndpoint({ ...checks, signature: { keys, nonces, pathPrefix }, idempotency });
  }
  return payoutEndpoint({
    ...checks,
    signature: { keys, pathPrefix },
    idempotency: { scope: "payout" },
    stores,
    // From the payout's commit on its outcome is due.
    outcomes,
    pay(payout, { tx }) {
      assertAmount(payout);
      return ledger.accept(payout, tx);
    },
  });
}

// More than zero, with at most two decimals: "10.10", not "-5" or "1e3". Where it stands is agreed with the service.
const anAmount = /^(?=.*[1-9])\d{1,15}(\.\d{1,2})?$/;

function assertAmount({ amountText }: Payout): void {
  if (!anAmount.test(amountText("/value") ?? "")) throw refuse("amount-invalid");
}

/** Whether an account is the one of a business: an IBAN under another business_id is no match. */
function businessFinder(businesses: readonly Business[]): (query: BusinessQuery) => boolean {
  const known = new Set(businesses.map(({ businessId, iban }) => `${iban} ${businessId}`));
  return ({ businessId, iban }) => known.has(`${iban} ${businessId}`);
}

/** In front of {@link receivePayouts}: logs what has been answered, and so has committed. */
export function logAccepted({ logger }: PayoutRouteParts): RequestHandler {
  return (req, res, next) => {
    res.once("finish", () => {
      if (res.statusCode === 200) logger.info(named(payoutOf(req)), "payout accepted");
    });
    next();
  };
}

/** Lease mode: the guard ends the key after the answer, and a payout whose key was not ended comes again: it is acknowledged. */
export function acceptPayout({ ledger, logger }: PayoutRouteParts): RequestHandler {
  return async (req, res) => {
    const payout = payoutOf(req);
    assertAmount(payout);
    const acceptance = await ledger.accept(payout);
    if (acceptance === "known") logger.warn(named(payout), "payout accepted by an earlier attempt");
    // As a paid key that comes with another payload: it is not paid again, and somebody has to look at it.
    if (acceptance === "known-otherwise") {
      logger.error(named(payout), "payout accepted by an earlier attempt with another instruction");
    }
    res.end();
  };
}

function named({ idempotencyKey, businessId }: Payout): object {
  return { idempotencyKey, businessId };
}
