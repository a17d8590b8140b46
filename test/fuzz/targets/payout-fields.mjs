// The schema of a payout, which the package does not export: what is accepted names one account, one business and one key, by rules
// written again here; the body stays as it is; a refusal has one documented fault a field.
import { assertProperty, assertSame, words } from "../property.mjs";

const { createPayoutParser } = await import(
  new URL("schema.js", import.meta.resolve("countersign/payout")).href
);

const maxLengths = { idempotencyKey: 40, businessId: 20, beneficiaryName: 20, reference: 20 };
const parsePayout = createPayoutParser({ referenceField: "reference", maxLengths });

const beneficiary = { iban: "GB82 WEST 1234 5698 7654 32", bic: "westgb2l", name: "A. Beneficiary", more: 1 };
const usual = {
  idempotency_key: "payout.b1.s1",
  business_id: "b1",
  beneficiary,
  amount: { value: 10.1, currency: "EUR" },
  reference: "line 1\nline 2",
};
const text = (value) => Buffer.from(JSON.stringify(value));

export const seeds = [
  text(usual),
  text({
    ...usual,
    more: [1],
    beneficiary: { ...beneficiary, iban: "DE89370400440532013000", bic: "COBADEFFXXX" },
  }),
  text({ ...usual, beneficiary: { ...beneficiary, iban: "MT84MALT011000012345MTLCAST001S" } }),
  ...["DE00370400440532013050", "DE01370400440532013032", "DE99370400440532013014"].map((iban) =>
    text({ ...usual, beneficiary: { ...beneficiary, iban } }),
  ),
  text({ ...usual, idempotency_key: "a..c" }),
  text({ ...usual, business_id: "\u0065\u0301" }),
  text({ ...usual, reference: " ", amount: [] }),
  text({ beneficiary: {} }),
  text([]),
];
export const maxLength = 700;
export const dictionary = [
  " ",
  "\xc3\xa9",
  "\xef\xbc\x91",
  ...words`
    "idempotency_key": "business_id": "beneficiary": "amount": "reference": "iban": "bic": "name":
    GB82WEST12345698765432 DE89370400440532013000 NO9386011117947 DEUTDEFF500 null {} [] "" 1 \u00a0
    \u200b \u00df \u0131 \n \u0000 \ud800 e\u0301 . .. \u0085 gb 00 97 98 01 \u0660 , "
  `,
];

const pointers =
  /^(?:\/(?:idempotency_key|business_id|amount|reference|beneficiary(?:\/(?:iban|bic|name))?))?$/;
const codes =
  /^(?:required|wrong-type|empty|too-long|control-character|invalid-(?:idempotency-key|identifier|iban|bic))$/;

export function run(input) {
  let body;
  try {
    body = JSON.parse(input.toString("utf8"));
  } catch {
    return "no JSON";
  }
  const before = JSON.stringify(body);
  const { faults, payout } = parsePayout(body);
  assertSame(JSON.stringify(body), before, "the body stays as it is");
  if (faults !== undefined) {
    const places = faults.map(({ pointer }) => pointer);
    assertProperty(
      places.every((place) => pointers.test(place)),
      "a fault has the pointer of a field",
      { faults },
    );
    assertProperty(
      faults.every(({ code }) => codes.test(code)),
      "a fault has a documented code",
      { faults },
    );
    assertSame([...new Set(places)], places, "a field has one fault");
    assertProperty(places.length > 0 && payout === undefined, "a refusal has a fault");
    return faults.map(({ pointer, code }) => `${pointer.length} ${code}`)[0];
  }
  assertPayout(payout, body);
  return `accepted ${payout.idempotencyKeyParts.length > 3} ${/[a-z]/.test(body.beneficiary.bic)}`;
}

function assertPayout(payout, body) {
  assertSame(payout.body, body, "the whole body is handed on");
  assertSame(payout.amount, body.amount, "the amount is handed on as it is");
  assertSame(payout.reference, body.reference, "the reference is handed on as it is");
  assertIdentifier(payout.businessId, body.business_id, maxLengths.businessId);
  assertIdentifier(payout.idempotencyKey, body.idempotency_key, maxLengths.idempotencyKey);
  const parts = body.idempotency_key.split(".");
  assertProperty(parts.length >= 3 && parts.every((part) => part.trim() !== ""), "a key has three parts", {
    parts,
  });
  assertSame(payout.idempotencyKey.trim(), payout.idempotencyKey, "a key has no white space around it");
  assertSame(payout.idempotencyKeyParts, parts, "the parts are those of the key");
  assertBeneficiary(payout.beneficiary, body.beneficiary);
}

function assertIdentifier(read, received, longest) {
  assertSame(read, received, "an identifier is as received");
  assertProperty(
    read.trim() !== "" && read.length <= longest,
    "an identifier is neither empty nor too long",
    { read },
  );
  assertProperty(!/[\p{Cc}\p{Cf}\p{Cs}\p{Co}]/u.test(read), "an identifier is visible text", { read });
  assertSame(read.normalize("NFC"), read, "an identifier has one sequence of code points");
}

function assertBeneficiary({ iban, bic, ...others }, { iban: sentIban, bic: sentBic, ...sentOthers }) {
  assertSame(others, sentOthers, "name and further fields are handed on as they are");
  assertSame(iban, sentIban.split(" ").join(""), "an IBAN is as received, without spaces");
  assertProperty(/^[A-Z]{2}[0-9]{2}[A-Z0-9]{8,30}$/.test(iban), "an IBAN has the form of ISO 13616", {
    iban,
  });
  // ISO 7064: letters count from 10, and the whole, with its first four characters at the end, is 1 modulo 97.
  const digits = [...iban.slice(4), ...iban.slice(0, 4)]
    .map((character) => Number.parseInt(character, 36))
    .join("");
  assertSame(BigInt(digits) % 97n, 1n, "an IBAN has valid check digits");
  // 98 minus a remainder: 00, 01 and 99 would be a second text of the accounts that have 97, 98 and 02.
  assertProperty(!/^..(?:00|01|99)/.test(iban), "an account has one IBAN", { iban });
  assertProperty(
    /^[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}(?:[A-Z0-9]{3})?$/.test(bic),
    "a BIC has the form of ISO 9362",
    { bic },
  );
  assertSame(
    bic.toLowerCase(),
    sentBic.split(" ").join("").toLowerCase(),
    "a BIC is as received, in upper case",
  );
}
