import { guard, type GuardRequest, type Middleware } from "@countersign/guard";
import { numberTextAt } from "@countersign/raw-body";
import { payoutInvalid } from "./faults.ts";
import { setPayout } from "./payout.ts";
import { createPayoutParser, type PayoutSchemaOptions } from "./schema.ts";

/** Checks `req.body`, which jsonBody has just parsed from the verified bytes, and puts the payout on the request. */
export function readPayout(options: PayoutSchemaOptions): Middleware {
  const parse = createPayoutParser(options);
  return guard("readPayout", (req) => {
    const { faults, payout } = parse(req.body);
    if (faults !== undefined) throw payoutInvalid(faults);
    setPayout(req, {
      ...payout,
      amountText: (pointer) => amountText(req, pointer),
      business: undefined,
    });
  });
}

function amountText(req: GuardRequest, pointer: string): string | undefined {
  // Without its slash it would name a sibling of the amount.
  if (typeof pointer !== "string" || !pointer.startsWith("/")) {
    throw new TypeError('amountText: pointer must be a JSON pointer inside amount, such as "/value"');
  }
  return numberTextAt(req, `/amount${pointer}`);
}
