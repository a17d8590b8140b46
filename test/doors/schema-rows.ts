import { payoutWith } from "../../packages/endpoints/payout/test/payout-body.ts";
import { problem } from "./answers.ts";
import { payoutScene, signBody } from "./payout-scene.ts";
import type { Row } from "./row.ts";

const identifierRule = "must hold only visible, assigned characters, in Unicode normalization form C";
const keyRule =
  "must be <operation_key>.<from_id>.<to_id>: at least three parts without white space around the key";
const ibanRule = "must be an IBAN with valid check digits";
const bicRule = "must be a BIC of 8 or 11 characters";
const controls = "must hold no control characters";

const texts = [
  "/idempotency_key",
  "/business_id",
  "/beneficiary/iban",
  "/beneficiary/bic",
  "/beneficiary/name",
  "/reference",
];
const objects = ["/beneficiary", "/amount"];
const notTexts = [1, true, null, [], {}];
const notObjects = [1, "text", null, []];
const invisible = {
  "a zero-width space": "\u200b",
  "a right-to-left override": "\u202e",
  "a decomposed letter": "u\u0308",
};

type Fault = readonly [pointer: string, value: unknown, code: string, detail: string];

const faults: readonly Fault[] = [
  ...[...texts, ...objects].map((pointer): Fault => [pointer, undefined, "required", "is required"]),
  ...texts.flatMap((pointer) =>
    notTexts.map((value): Fault => [pointer, value, "wrong-type", "must be a string"]),
  ),
  ...objects.flatMap((pointer) =>
    notObjects.map((value): Fault => [pointer, value, "wrong-type", "must be an object"]),
  ),
  ...["", " "].flatMap((value) =>
    ["/idempotency_key", "/business_id", "/beneficiary/name", "/reference"].map((pointer): Fault => [
      pointer,
      value,
      "empty",
      "must not be empty",
    ]),
  ),
  ...["a", "a.b", "a..b", ".a.b", "a.b.", " a.b.c", "a.b.c ", "a. .c"].map((value): Fault => [
    "/idempotency_key",
    value,
    "invalid-idempotency-key",
    keyRule,
  ]),
  ...Object.values(invisible).flatMap((text): Fault[] => [
    ["/idempotency_key", `a.b.c${text}`, "invalid-identifier", identifierRule],
    ["/business_id", `biz_1${text}`, "invalid-identifier", identifierRule],
  ]),
  ...["DE89370400440532013001", "DE00", "XX89370400440532013000", "", "DE89-3704-0044-0532-0130-00"].map(
    (value): Fault => ["/beneficiary/iban", value, "invalid-iban", ibanRule],
  ),
  ...["COBADEF", "COBADEFFXX", "1OBADEFF", "", "COBADEFFXXXX"].map((value): Fault => [
    "/beneficiary/bic",
    value,
    "invalid-bic",
    bicRule,
  ]),
  ["/beneficiary/name", "a\u0000b", "control-character", controls],
  ["/beneficiary/name", "a\nb", "control-character", controls],
  ["/reference", "a\u0007b", "control-character", controls],
  ["/business_id", "x".repeat(257), "too-long", "must have at most 256 characters"],
  ["/beneficiary/name", "x".repeat(257), "too-long", "must have at most 256 characters"],
  ["/reference", "x".repeat(1_025), "too-long", "must have at most 1024 characters"],
];

const wholes = [[], null, 1, "text", true];

/** Payouts that break one rule of the schema: 400, with the fault and nothing else. */
export const schemaRows: readonly Row[] = [
  ...faults,
  ...wholes.map((value): Fault => ["", value, "wrong-type", "must be an object"]),
].map(([pointer, value, code, detail]) => ({
  title: `${pointer === "" ? "a body" : pointer} that is ${show(value)}`,
  scene: payoutScene(),
  request: () => signBody(JSON.stringify(payoutWith(pointer, value))),
  answer: problem(400, { code: "payout-invalid", errors: [{ pointer, code, detail }] }),
  code: "payout-invalid",
  ran: 0,
  recorded: "free",
}));

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? "absent";
  return text.length > 60
    ? `${value instanceof Object ? "an object" : String(value).length} characters long`
    : text;
}
