import { GuardError, quoteForLog } from "@countersign/core";

export type OutcomesCode = "outcome-differs";

/** Another outcome of the same payout was reported before: the transaction that settles it again has to roll back. */
export function outcomeDiffers(idempotencyKey: string): GuardError<OutcomesCode> {
  return new GuardError<OutcomesCode>({
    status: 500,
    code: "outcome-differs",
    message: `another outcome of the payout ${quoteForLog(idempotencyKey)} was reported before`,
  });
}
