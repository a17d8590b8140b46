import { GuardError } from "@countersign/core";
import { unanswered } from "@countersign/core/internal";

/** The codes of this package's own refusals; the checks before it have theirs. */
export type PayoutCode =
  | "business-lookup-unavailable"
  | "business-unknown"
  | "method-not-allowed"
  | "path-not-mounted"
  | "payout-invalid";

export const payoutFaultCodes = [
  "required",
  "wrong-type",
  "empty",
  "too-long",
  "control-character",
  "invalid-identifier",
  "invalid-idempotency-key",
  "invalid-iban",
  "invalid-bic",
  "business-unknown",
] as const;

/** What is wrong with one field; stable, for programs. */
export type PayoutFaultCode = (typeof payoutFaultCodes)[number];

/** One entry of `errors` in a 400 answer. It names the field and the rule, never the received value. */
export interface PayoutFault {
  /** Where in the body, as a JSON pointer (RFC 6901); the empty string is the whole body. */
  readonly pointer: string;
  readonly code: PayoutFaultCode;
  readonly detail: string;
}

/** The JSON pointer of `path` (RFC 6901 section 3). */
export function serializePointer(path: readonly PropertyKey[]): string {
  return path.map((part) => `/${String(part).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

export function payoutInvalid(errors: readonly PayoutFault[]): GuardError<PayoutCode> {
  const summary = errors.map(({ pointer, code }) => `${pointer === "" ? "the body" : pointer} ${code}`);
  return new GuardError<PayoutCode>({
    status: 400,
    code: "payout-invalid",
    message: `the payout breaks the schema: ${summary.join(", ")}`,
    problem: { errors },
  });
}

export function businessUnknown(): GuardError<PayoutCode> {
  const fault: PayoutFault = {
    pointer: "/beneficiary/iban",
    code: "business-unknown",
    detail: "matches no registered business",
  };
  return new GuardError<PayoutCode>({
    status: 400,
    code: "business-unknown",
    message: "findBusiness knows no business with this iban and business_id",
    problem: { errors: [fault] },
  });
}

/** The 503 for a lookup without an answer: the business may exist, so the service must try again. */
export function businessLookupUnavailable(cause: unknown): GuardError<PayoutCode> {
  const message = "findBusiness failed or did not answer in time";
  return new GuardError<PayoutCode>(unanswered("business-lookup-unavailable", message, cause));
}
