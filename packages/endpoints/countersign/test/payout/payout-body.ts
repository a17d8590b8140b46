/** A payout as the lending service sends it; the fields of the amount and the reference field are this platform's example. */
export const payoutBody: Readonly<Record<string, unknown>> = {
  idempotency_key: "op_1.acc_from.acc_to",
  business_id: "biz_1",
  beneficiary: { iban: "DE89370400440532013000", bic: "COBADEFFXXX", name: "Example Trading GmbH" },
  amount: { value: 10.1, currency: "EUR" },
  reference: "Funding 1",
};

/** A copy of {@link payoutBody} with the value at `pointer` replaced, or removed when `value` is undefined. */
export function payoutWith(pointer: string, value: unknown): unknown {
  if (pointer === "") return value;
  const body = structuredClone(payoutBody) as Record<string, unknown>;
  const path = pointer.slice(1).split("/");
  const last = path.pop() as string;
  let target = body;
  for (const name of path) target = target[name] as Record<string, unknown>;
  if (value === undefined) delete target[last];
  else target[last] = value;
  return body;
}
