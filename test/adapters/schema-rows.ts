import { payoutWith } from "../../packages/endpoints/countersign/test/payout/payout-body.ts";
import { problem } from "./answers.ts";
import { payoutScene, signBody } from "./payout-scene.ts";
import type { Row } from "./row.ts";

type Fault = readonly [pointer: string, value: unknown, code: string, detail: string];

/** One for each code; which values have it is the business of the schema's own tests. */
const faults: readonly Fault[] = [
  ["", [], "wrong-type", "must be an object"],
  ["/idempotency_key", undefined, "required", "is required"],
  ["/beneficiary/name", 1, "wrong-type", "must be a string"],
  ["/business_id", " ", "empty", "must not be empty"],
  [
    "/idempotency_key",
    "a..b",
    "invalid-idempotency-key",
    "must be <operation_key>.<from_id>.<to_id>: at least three parts without white space around the key",
  ],
  [
    "/business_id",
    "biz_1\u202e",
    "invalid-identifier",
    "must hold only visible, assigned characters, in Unicode normalization form C",
  ],
  ["/beneficiary/iban", "DE89370400440532013001", "invalid-iban", "must be an IBAN with valid check digits"],
  ["/beneficiary/bic", "COBADEF", "invalid-bic", "must be a BIC of 8 or 11 characters"],
  ["/beneficiary/name", "a\nb", "control-character", "must hold no control characters"],
  ["/reference", "x".repeat(1_025), "too-long", "must have at most 1024 characters"],
];

/** Payouts that break one rule of the schema: 400, with the fault and nothing else. */
export const schemaRows: readonly Row[] = faults.map(([pointer, value, code, detail]) => ({
  title: `${pointer === "" ? "a body" : pointer}: ${code}`,
  scene: payoutScene(),
  request: () => signBody(JSON.stringify(payoutWith(pointer, value))),
  answer: problem(400, { code: "payout-invalid", errors: [{ pointer, code, detail }] }),
  code: "payout-invalid",
  ran: 0,
  recorded: "free",
}));
