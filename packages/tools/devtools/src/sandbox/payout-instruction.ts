import { randomUUID } from "node:crypto";

export interface PayoutInstruction {
  readonly idempotency_key: string;
  readonly business_id: string;
  readonly beneficiary: { readonly iban: string; readonly bic: string; readonly name: string };
  readonly amount: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

/** Nothing is checked: wrong values are worth sending too. */
export interface PayoutInstructionOptions {
  /** `<operation_key>.<from_id>.<to_id>`. Default a fresh one for each call. */
  readonly idempotencyKey?: string | undefined;
  readonly businessId?: string | undefined;
  readonly iban?: string | undefined;
  readonly bic?: string | undefined;
  readonly name?: string | undefined;
  /** The contract does not show the fields of an amount. Default `{ value: "10.00", currency: "EUR" }`, a sample. */
  readonly amount?: Readonly<Record<string, unknown>> | undefined;
  readonly reference?: string | undefined;
  /** The contract does not show the name of this field either. Default `reference`, a sample. */
  readonly referenceField?: string | undefined;
}

/** Sample instructions pay it, so a platform under test has to know it. */
export const sampleBusiness: Readonly<Record<"businessId" | "iban" | "bic" | "name", string>> = {
  businessId: "business-1",
  iban: "DE89370400440532013000",
  bic: "COBADEFFXXX",
  name: "Example Trading GmbH",
};

/** A sample with a valid IBAN and BIC and a fresh idempotency key. */
export function createPayoutInstruction(options: PayoutInstructionOptions = {}): PayoutInstruction {
  return {
    idempotency_key: options.idempotencyKey ?? `payout-${randomUUID()}.funding-1.business-1`,
    business_id: options.businessId ?? sampleBusiness.businessId,
    beneficiary: {
      iban: options.iban ?? sampleBusiness.iban,
      bic: options.bic ?? sampleBusiness.bic,
      name: options.name ?? sampleBusiness.name,
    },
    amount: options.amount ?? { value: "10.00", currency: "EUR" },
    [options.referenceField ?? "reference"]: options.reference ?? "Funding payout, sample",
  };
}
