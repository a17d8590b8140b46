import { describe, expect, test } from "@jest/globals";
import { createPayoutInstruction, sampleBusiness } from "../src/index.ts";

// ISO 13616: the first four characters go to the end, letters count from 10, the number is 1 modulo 97.
function ibanRemainder(iban: string): number {
  const digits = `${iban.slice(4)}${iban.slice(0, 4)}`.replace(/[A-Z]/g, (letter) =>
    String(letter.charCodeAt(0) - 55),
  );
  return Array.from(digits).reduce((remainder, digit) => (remainder * 10 + Number(digit)) % 97, 0);
}

describe("createPayoutInstruction", () => {
  test("fills every field with a valid sample", () => {
    const instruction = createPayoutInstruction();
    expect(instruction).toEqual({
      idempotency_key: expect.stringMatching(/^[^.]+\.[^.]+\.[^.]+$/),
      business_id: sampleBusiness.businessId,
      beneficiary: { iban: sampleBusiness.iban, bic: sampleBusiness.bic, name: sampleBusiness.name },
      amount: { value: "10.00", currency: "EUR" },
      reference: expect.stringMatching(/./),
    });
    expect(ibanRemainder(instruction.beneficiary.iban)).toBe(1);
    expect(instruction.beneficiary.bic).toMatch(/^[A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?$/);
  });

  test("has a fresh idempotency key each time", () => {
    expect(createPayoutInstruction().idempotency_key).not.toBe(createPayoutInstruction().idempotency_key);
  });

  test("takes every value from its caller", () => {
    const instruction = createPayoutInstruction({
      idempotencyKey: "a.b.c",
      businessId: "b-7",
      iban: "NL91ABNA0417164300",
      bic: "ABNANL2A",
      name: "Seven B.V.",
      amount: { minor: 1 },
      reference: "Order 7",
      referenceField: "remittance",
    });
    expect(instruction).toEqual({
      idempotency_key: "a.b.c",
      business_id: "b-7",
      beneficiary: { iban: "NL91ABNA0417164300", bic: "ABNANL2A", name: "Seven B.V." },
      amount: { minor: 1 },
      remittance: "Order 7",
    });
  });
});
