import { findPayout } from "./payouts.js";

export async function describe(key) {
  const payout = await findPayout(key.slice("payout:".length));
  return (
    payout && {
      amount: payout.amount,
      beneficiary: `${payout.name}, ${payout.iban}`,
    }
  );
}
