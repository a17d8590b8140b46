import { describe, expect, test } from "@jest/globals";
import { createPayoutParser, type ParsedPayout } from "../../src/payout/schema.ts";
import { payoutBody, payoutWith } from "./payout-body.ts";

const maxLengths = { idempotencyKey: 30, businessId: 20, beneficiaryName: 40, reference: 50 };
const parse = createPayoutParser({ referenceField: "reference", maxLengths });

function payoutIn(body: unknown, parser = parse): ParsedPayout {
  const { payout, faults } = parser(body);
  if (payout === undefined) throw new Error(JSON.stringify(faults));
  return payout;
}

function faultsIn(body: unknown, parser = parse): string[] {
  return (parser(body).faults ?? []).map(({ pointer, code }) => `${pointer} ${code}`);
}

describe("createPayoutParser", () => {
  test("gives the fields of a payout", () => {
    expect(payoutIn(payoutBody)).toEqual({
      idempotencyKey: "op_1.acc_from.acc_to",
      idempotencyKeyParts: ["op_1", "acc_from", "acc_to"],
      businessId: "biz_1",
      beneficiary: { iban: "DE89370400440532013000", bic: "COBADEFFXXX", name: "Example Trading GmbH" },
      amount: { value: 10.1, currency: "EUR" },
      reference: "Funding 1",
      body: payoutBody,
    });
  });

  test.each([
    ["an IBAN in groups of four", "/beneficiary/iban", "DE89 3704 0044 0532 0130 00"],
    ["an IBAN with letters in the account number", "/beneficiary/iban", "MT84MALT011000012345MTLCAST001S"],
    ["a BIC of 8 characters", "/beneficiary/bic", "DEUTDEFF"],
    ["a BIC of 11 characters", "/beneficiary/bic", "DEUTDEFF500"],
    ["a BIC with spaces", "/beneficiary/bic", "DEUT DE FF"],
    ["a BIC in lower case", "/beneficiary/bic", "deutdeff"],
    ["a name outside ASCII", "/beneficiary/name", "Ångström & Söhne 株式会社"],
    ["a key with dots in its ids", "/idempotency_key", "op.a.b.c.d"],
    ["a key of the longest length", "/idempotency_key", `${"x".repeat(26)}.a.b`],
    ["a key outside ASCII", "/idempotency_key", "öp.a/b.c c"],
    ["an empty amount", "/amount", {}],
    ["a nested amount", "/amount", { net: { value: "1.00" } }],
    ["a reference with lines", "/reference", "Funding\r\n\t1"],
    ["a further field", "/new_field", [1, 2]],
    ["a further field of the beneficiary", "/beneficiary/country", "DE"],
  ])("accepts %s", (_name, pointer, value) => {
    expect(faultsIn(payoutWith(pointer, value))).toEqual([]);
  });

  test.each([
    // Fields that are missing, empty or of another type are in the table of every adapter.
    ["an empty part among five", "/idempotency_key", "a.b..c.d", "invalid-idempotency-key"],
    ["a no-break space before the key", "/idempotency_key", "\u00A0a.b.c", "invalid-identifier"],
    ["a NUL in the key", "/idempotency_key", "a.b.c\u0000", "control-character"],
    ["a line feed in the key", "/idempotency_key", "a.b\n.c", "control-character"],
    ["a C1 control in the key", "/idempotency_key", "a.b\u0085.c", "control-character"],
    ["a key that is too long", "/idempotency_key", `${"x".repeat(27)}.a.b`, "too-long"],
    ["a business_id that is too long", "/business_id", "x".repeat(21), "too-long"],
    ["an escape in business_id", "/business_id", "biz\u001B[2J", "control-character"],
    ["wrong check digits", "/beneficiary/iban", "DE88370400440532013000", "invalid-iban"],
    ["an IBAN one digit short", "/beneficiary/iban", "DE8937040044053201300", "invalid-iban"],
    ["two swapped digits", "/beneficiary/iban", "DE89370400440532010300", "invalid-iban"],
    ["an IBAN of no country", "/beneficiary/iban", "ZZ89370400440532013000", "invalid-iban"],
    ["an IBAN in lower case", "/beneficiary/iban", "de89370400440532013000", "invalid-iban"],
    ["an IBAN with a line feed", "/beneficiary/iban", "DE89370400440532013000\n", "invalid-iban"],
    ["an IBAN with a no-break space", "/beneficiary/iban", "DE89\u00A0370400440532013000", "invalid-iban"],
    ["an IBAN in full-width digits", "/beneficiary/iban", "DE８９370400440532013000", "invalid-iban"],
    ["a BIC of 9 characters", "/beneficiary/bic", "DEUTDEFF5", "invalid-bic"],
    ["a BIC of no country", "/beneficiary/bic", "DEUTZZFF", "invalid-bic"],
    ["a BIC whose upper case is longer", "/beneficiary/bic", "DEUTDEß", "invalid-bic"],
    ["a BIC with a line feed", "/beneficiary/bic", "DEUTDEFF\n", "invalid-bic"],
    ["a name that is too long", "/beneficiary/name", "x".repeat(41), "too-long"],
    ["a line feed in the name", "/beneficiary/name", "A\nB", "control-character"],
    ["a reference that is too long", "/reference", "x".repeat(51), "too-long"],
    ["a NUL in the reference", "/reference", "a\u0000", "control-character"],
  ])("refuses %s", (_name, pointer, value, code) => {
    expect(faultsIn(payoutWith(pointer, value))).toEqual([`${pointer} ${code}`]);
  });

  test("lists every fault, one for each field", () => {
    const body = { idempotency_key: "a.b\n", beneficiary: { iban: "x", bic: 1, name: "" }, amount: [] };
    expect(faultsIn(body)).toEqual([
      "/idempotency_key control-character",
      "/business_id required",
      "/beneficiary/iban invalid-iban",
      "/beneficiary/bic wrong-type",
      "/beneficiary/name empty",
      "/amount wrong-type",
      "/reference required",
    ]);
  });

  test("repeats no received text in a fault", () => {
    const canary = "CANARY";
    const body = {
      idempotency_key: canary,
      business_id: `${canary}\n`,
      beneficiary: { iban: canary, bic: canary, name: canary.repeat(20), [canary]: canary },
      amount: canary,
      reference: [canary],
      [canary]: canary,
    };
    const { faults } = parse(body);
    expect(faults).toHaveLength(7);
    expect(JSON.stringify(faults)).not.toContain(canary);
  });

  test("gives IBAN and BIC without spaces and leaves the body as it came", () => {
    const beneficiary = {
      iban: " DE89 3704 0044 0532 0130 00",
      bic: "coba de ff",
      name: " Example ",
      country: "DE",
    };
    const body = { ...payoutBody, beneficiary };
    const before = structuredClone(body);
    const payout = payoutIn(body);
    expect(payout.beneficiary).toEqual({
      iban: "DE89370400440532013000",
      bic: "COBADEFF",
      name: " Example ",
      country: "DE",
    });
    expect(payout.body).toBe(body);
    expect(body).toEqual(before);
  });

  test("leaves the reference unchecked where its field is not configured", () => {
    const parser = createPayoutParser({ referenceField: undefined, maxLengths });
    expect(payoutIn(payoutWith("/reference", 5), parser).reference).toBeUndefined();
    expect(payoutIn(payoutWith("/reference", undefined), parser).reference).toBeUndefined();
  });

  test("never takes a member of Object.prototype for the reference", () => {
    const parser = createPayoutParser({ referenceField: "constructor", maxLengths });
    expect(faultsIn(payoutBody, parser)).toEqual(["/constructor wrong-type"]);
  });

  test("escapes the reference field in its pointer", () => {
    const parser = createPayoutParser({ referenceField: "transfer/text~1", maxLengths });
    expect(faultsIn(payoutBody, parser)).toEqual(["/transfer~1text~01 required"]);
    expect(payoutIn({ ...payoutBody, "transfer/text~1": "x" }, parser).reference).toBe("x");
  });
});
