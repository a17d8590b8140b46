import { createRequestFact, type GuardRequest, type RequestFact } from "@countersign/guard";
import type { PayoutBeneficiary } from "./schema.ts";

declare global {
  namespace Express {
    /** What `findBusiness` returns for a known business. Declare its members in your app to have `req.payout.business` typed. */
    // oxlint-disable-next-line typescript/no-empty-object-type, typescript/no-empty-interface
    interface PayoutBusiness {}

    interface Request {
      /** The payout that this request instructs, once `payoutEndpoint` has let it pass. */
      payout?: Payout | undefined;
    }
  }
}

/** One payout instruction whose signature, digest and form were checked. Nothing in it was changed but what is said here. */
export interface Payout {
  readonly idempotencyKey: string;
  /** The key's dot-separated parts, at least three. Ids may hold dots, so which parts belong together is not known. */
  readonly idempotencyKeyParts: readonly string[];
  readonly businessId: string;
  readonly beneficiary: PayoutBeneficiary;
  /** As parsed: digits beyond a double are lost here, so take numbers by {@link Payout.amountText}. */
  readonly amount: Readonly<Record<string, unknown>>;
  /**
   * The digits of a number in `amount` exactly as signed, by JSON pointer: `amountText("/value")` is `"10.10"` where
   * `amount.value` is 10.1. Undefined where there is no number.
   */
  readonly amountText: (pointer: string) => string | undefined;
  /** The text under `referenceField`; undefined when that option is not set. */
  readonly reference: string | undefined;
  /** What `findBusiness` returned; undefined without `findBusiness`, and when it returned true. */
  readonly business: Express.PayoutBusiness | undefined;
  /** The whole body as received, further fields included. */
  readonly body: Readonly<Record<string, unknown>>;
}

// A trust decision: req.payout can be overwritten by any middleware, this cannot.
const payouts: RequestFact<Payout> = createRequestFact();

/** The payout of a request that passed `payoutEndpoint`. Throws an Error when it did not: a handler on an unguarded route. */
export function payoutOf(req: GuardRequest): Payout {
  const payout = payouts.get(req);
  if (payout === undefined) {
    throw new Error(
      "payoutOf: no payout was checked for this request; mount payoutEndpoint(options) before the handler",
    );
  }
  return payout;
}

/** Makes `payout` the one that handlers see. */
export function setPayout(req: GuardRequest, payout: Payout): void {
  payouts.set(req, payout);
  req.payout = payout;
}
