import { refuse, type Payout } from "countersign/payout";

// More than zero, with at most two decimals: "10.10", not "-5" or "1e3".
const anAmount = /^(?=.*[1-9])\d{1,15}(\.\d{1,2})?$/;

/**
 * The digits that were signed; throws a refusal of anything else. What is in `amount` is agreed with the lending service, and nothing
 * has checked it before: check its currency here too.
 */
export function amountOf({ amountText }: Pick<Payout, "amountText">): string {
  const amount = amountText("/value") ?? "";
  if (!anAmount.test(amount)) throw refuse("amount-invalid");
  return amount;
}
