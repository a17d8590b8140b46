import type { PayoutEndpointOptions } from "@countersign/payout";
import { payoutEndpoint, payoutOf } from "@countersign/payout";
import type { Express } from "express";

/** A bank's API: it recognises a payment by `reference`, and answers a repeated one as it did the first time. */
export interface Bank {
  transfer(order: { iban: string; amount: string; reference: string }, signal: AbortSignal): Promise<void>;
}

export function payByBank(app: Express, options: PayoutEndpointOptions, bank: Bank): void {
  app.post("/api/v1/transaction", payoutEndpoint(options), async (req, res) => {
    const { idempotency } = req;
    const { idempotencyKey: reference, beneficiary, amountText } = payoutOf(req);
    const amount = amountText("/value");
    if (idempotency === undefined || amount === undefined) throw new Error("no key, or no amount");
    // From here on nobody but the bank knows. When this process dies now, the key waits for an operator, and no retry pays.
    idempotency.hold("the bank was asked");
    idempotency.signal.throwIfAborted();
    await bank.transfer({ iban: beneficiary.iban, amount, reference }, idempotency.signal);
    res.json({ status: "acknowledged" });
  });
}
