import { identifierFault } from "@countersign/core/internal";
import { isValidBIC, isValidIBAN } from "ibantools";
import { serializePointer, type PayoutFault, type PayoutFaultCode } from "./faults.ts";

interface PayoutSchemaOptions {
  readonly referenceField: string | undefined;
  readonly maxLengths: Readonly<
    Record<"idempotencyKey" | "businessId" | "beneficiaryName" | "reference", number>
  >;
}

/** What the body of a payout says, checked; unchanged but where a comment says so. */
export interface ParsedPayout {
  readonly idempotencyKey: string;
  /** The key's dot-separated parts, at least three. Ids may hold dots, so which parts belong together is unknown. */
  readonly idempotencyKeyParts: readonly string[];
  readonly businessId: string;
  readonly beneficiary: PayoutBeneficiary;
  /** As parsed: digits beyond a double are lost here, so take them by `amountText`. */
  readonly amount: Readonly<Record<string, unknown>>;
  /** The text under `referenceField`; undefined when that option is not set. */
  readonly reference: string | undefined;
  /** The whole body as received, further fields included. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** The account that receives the money, with the further fields that were received. */
interface PayoutBeneficiary {
  /** In electronic format: without spaces. */
  readonly iban: string;
  /** Without spaces, in upper case. */
  readonly bic: string;
  readonly name: string;
  readonly [field: string]: unknown;
}

type PayoutVerdict =
  | { readonly faults?: undefined; readonly payout: ParsedPayout }
  | { readonly faults: readonly PayoutFault[]; readonly payout?: undefined };

/** The fields that the spec names at the top of the body; `referenceField` can be none of them. */
export const namedFields: readonly string[] = ["idempotency_key", "business_id", "beneficiary", "amount"];

/** Makes the parser. It leaves the body as it is, and lists at most one fault for each field. */
export function createPayoutParser({
  referenceField,
  maxLengths,
}: PayoutSchemaOptions): (body: unknown) => PayoutVerdict {
  const businessIdRule = identifier(maxLengths.businessId);
  const keyRule = identifier(maxLengths.idempotencyKey, form(isIdempotencyKey, keyFault));
  const nameRule = boundedText(maxLengths.beneficiaryName);
  const referenceRule = boundedText(maxLengths.reference, controlInLines);
  return (body) => {
    if (!isRecord(body))
      return { faults: [{ pointer: "", code: "wrong-type", detail: "must be an object" }] };
    const fields = new FieldReading();
    const idempotencyKey = fields.text(body, ["idempotency_key"], keyRule);
    const businessId = fields.text(body, ["business_id"], businessIdRule);
    const beneficiary = readBeneficiary(fields, fields.object(body, "beneficiary"), nameRule);
    // The interface does not show its fields.
    const amount = fields.object(body, "amount");
    const reference =
      referenceField === undefined ? undefined : fields.text(body, [referenceField], referenceRule);
    if (fields.faults.length > 0) return { faults: fields.faults };
    const idempotencyKeyParts = idempotencyKey.split(".");
    return {
      payout: {
        idempotencyKey,
        idempotencyKeyParts,
        businessId,
        beneficiary,
        amount: { ...amount },
        reference,
        body,
      },
    };
  };
}

type Fields = Readonly<Record<string, unknown>>;

type TextRule = (value: string) => Fault | undefined;

/** Collects the faults of fields. The result for a field with a fault is not used. */
class FieldReading {
  readonly faults: PayoutFault[] = [];

  /** `as` converts the received text before it is checked and returned. */
  text(holder: Fields, path: readonly string[], rule: TextRule, as = (text: string): string => text): string {
    const received = holder[path.at(-1) ?? ""];
    if (typeof received !== "string") {
      this.#add(path, typeFault(received, "a string"));
      return "";
    }
    const text = as(received);
    const fault = rule(text);
    if (fault !== undefined) this.#add(path, fault);
    return text;
  }

  object(holder: Fields, name: string): Fields | undefined {
    const received = holder[name];
    if (isRecord(received)) return received;
    this.#add([name], typeFault(received, "an object"));
    return undefined;
  }

  #add(path: readonly string[], { code, detail }: Fault): void {
    this.faults.push({ pointer: serializePointer(path), code, detail });
  }
}

function readBeneficiary(
  fields: FieldReading,
  received: Fields | undefined,
  nameRule: TextRule,
): PayoutBeneficiary {
  if (received === undefined) return { iban: "", bic: "", name: "" };
  const iban = fields.text(received, ["beneficiary", "iban"], ibanRule, withoutSpaces);
  const bic = fields.text(received, ["beneficiary", "bic"], bicRule, withoutSpaces);
  const name = fields.text(received, ["beneficiary", "name"], nameRule);
  // After the check, which admits ASCII alone: "ß" would become "SS".
  return { ...received, iban, bic: bic.toUpperCase(), name };
}

function typeFault(received: unknown, type: string): Fault {
  if (received === undefined) return { code: "required", detail: "is required" };
  return { code: "wrong-type", detail: `must be ${type}` };
}

const anyControl = /\p{Cc}/u;
// A bank reference may have lines.
const controlInLines = /(?![\t\n\r])\p{Cc}/u;

const keyFault: Fault = {
  code: "invalid-idempotency-key",
  detail:
    "must be <operation_key>.<from_id>.<to_id>: at least three parts without white space around the key",
};
const visibleFault: Fault = {
  code: "invalid-identifier",
  detail: "must hold only visible, assigned characters, in Unicode normalization form C",
};
const ibanFault: Fault = { code: "invalid-iban", detail: "must be an IBAN with valid check digits" };
const bicFault: Fault = { code: "invalid-bic", detail: "must be a BIC of 8 or 11 characters" };

interface Fault {
  readonly code: PayoutFaultCode;
  readonly detail: string;
}

const ibanRule = form(isValidIBAN, ibanFault);
const bicRule = form(isValidBIC, bicFault);

function boundedText(maxLength: number, control: RegExp = anyControl): TextRule {
  const tooLong: Fault = { code: "too-long", detail: `must have at most ${maxLength} characters` };
  return (value) => {
    if (value.trim() === "") return { code: "empty", detail: "must not be empty" };
    if (value.length > maxLength) return tooLong;
    if (control.test(value)) return { code: "control-character", detail: "must hold no control characters" };
    return undefined;
  };
}

// Machines compare identifiers and people read them; the reference and the name are for people alone.
function identifier(maxLength: number, further: TextRule = () => undefined): TextRule {
  const bounded = boundedText(maxLength);
  const visible = form((value) => identifierFault(value) === undefined, visibleFault);
  return (value) => bounded(value) ?? visible(value) ?? further(value);
}

function form(isValid: (value: string) => boolean, fault: Fault): TextRule {
  return (value) => (isValid(value) ? undefined : fault);
}

function withoutSpaces(value: string): string {
  return value.replaceAll(" ", "");
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether `key` has at least three dot-separated parts, none blank. More are fine: the interface shows no alphabet of ids. */
function isIdempotencyKey(key: string): boolean {
  // "a.b.c" and "a.b.c " would be one key for a person and two payments for the bank.
  if (key !== key.trim()) return false;
  const parts = key.split(".");
  return parts.length >= 3 && parts.every((part) => part.trim() !== "");
}

/** The key of a payout in the store, for `store.resolve()` and look-ups. `scope` is that of payoutEndpoint(), default `payout`. */
export function payoutStoreKey(idempotencyKey: string, scope = "payout"): string {
  return `${scope}:${idempotencyKey}`;
}
