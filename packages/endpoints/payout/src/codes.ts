/** The codes of the refusals that this package makes; a payout also meets those of the checks before it. */
export type PayoutCode =
  | "business-lookup-unavailable"
  | "business-unknown"
  | "method-not-allowed"
  | "path-not-mounted"
  | "payout-invalid";
