import type { RequestIdempotency } from "@countersign/idempotency-guard";
import {
  payoutEndpoint,
  payoutOf,
  refuse,
  type Payout,
  type PayoutEndpointOptions,
} from "countersign/payout";
import type { Express } from "express";

/**
 * A bank's API: it recognises a payment by `reference`, and answers a
 * repeated one as it did the first time.
 */
export interface Bank {
  transfer(
    order: { iban: string; amount: string; reference: string },
    signal: AbortSignal,
  ): Promise<void>;
}

// More than zero, with at most two decimals: "10.10", not "-5" or "1e3".
const anAmount = /^(?=.*[1-9])\d{1,15}(\.\d{1,2})?$/;

async function pay(
  payout: Payout,
  attempt: RequestIdempotency,
  bank: Bank,
): Promise<void> {
  // The digits that were signed: a JavaScript number has lost some.
  const amount = payout.amountText("/value") ?? "";
  if (!anAmount.test(amount)) throw refuse("amount-invalid");
  const order = {
    iban: payout.beneficiary.iban,
    amount,
    reference: payout.idempotencyKey,
  };
  // From here on nobody but the bank knows. When this process dies now, the
  // key waits for an operator, and no retry pays.
  attempt.hold("the bank was asked");
  attempt.signal.throwIfAborted();
  await bank.transfer(order, attempt.signal);
}

export function payByBank(
  app: Express,
  options: PayoutEndpointOptions,
  bank: Bank,
): void {
  app.post(
    "/api/v1/transaction",
    payoutEndpoint(options),
    (req, res, next) => {
      if (req.idempotency === undefined)
        throw new Error("payoutEndpoint() must come first");
      pay(payoutOf(req), req.idempotency, bank).then(
        () => res.json({ status: "acknowledged" }),
        next,
      );
    },
  );
}
