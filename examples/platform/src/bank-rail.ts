/** A bank transfer that has to happen. */
export interface TransferOrder {
  readonly idempotencyKey: string;
  readonly businessId: string;
  readonly beneficiary: { readonly iban: string; readonly bic: string; readonly name: string };
  readonly reference: string | undefined;
  /** The signed body: the fields of `amount` are agreed with the service, and its digits must stay as received. */
  readonly instruction: string;
}

/** How a transfer ended. Only a definite answer of the bank is an outcome; everything else is a throw. */
export type TransferOutcome =
  | { readonly status: "executed"; readonly reason?: undefined }
  | { readonly status: "failed"; readonly reason: string };

/**
 * The platform's bank. `execute` is called again after a throw, a time-out or a crash: an order whose `idempotencyKey` the
 * bank has seen must not move money a second time, and is answered as it was the first time.
 */
export interface BankRail {
  execute(order: TransferOrder, signal: AbortSignal): Promise<TransferOutcome>;
}

/**
 * A bank for practice that moves nothing: each transfer is executed, but one to a beneficiary whose name begins with
 * "Closed" fails. The same order always ends in the same way.
 */
export function practiceBankRail(): BankRail {
  return {
    execute: ({ beneficiary }) =>
      Promise.resolve(
        beneficiary.name.startsWith("Closed")
          ? { status: "failed", reason: "the account is closed" }
          : { status: "executed" },
      ),
  };
}
