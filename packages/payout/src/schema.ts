import { identifierFault } from "@countersign/core";
import { isValidBIC, isValidIBAN } from "ibantools";
import * as z from "zod";
import { serializePointer, type PayoutFault, type PayoutFaultCode } from "./faults.ts";

/** What the schema leaves to the platform, resolved. */
export interface PayoutSchemaOptions {
  readonly referenceField: string | undefined;
  readonly maxLengths: {
    readonly idempotencyKey: number;
    readonly businessId: number;
    readonly beneficiaryName: number;
    readonly reference: number;
  };
}

/** What a payout's body says, checked. */
export interface ParsedPayout {
  readonly idempotencyKey: string;
  readonly idempotencyKeyParts: readonly string[];
  readonly businessId: string;
  readonly beneficiary: PayoutBeneficiary;
  readonly amount: Readonly<Record<string, unknown>>;
  readonly reference: string | undefined;
  readonly body: Readonly<Record<string, unknown>>;
}

/** The account that receives the money, with the further fields that were received. */
export interface PayoutBeneficiary {
  /** In electronic format: without spaces. */
  readonly iban: string;
  /** Without spaces, in upper case. */
  readonly bic: string;
  readonly name: string;
  readonly [field: string]: unknown;
}

/** Either the checked fields, or every fault. */
export type PayoutVerdict =
  | { readonly faults?: undefined; readonly payout: ParsedPayout }
  | { readonly faults: readonly PayoutFault[]; readonly payout?: undefined };

/** The fields that the spec names at the top of the body; `referenceField` can be none of them. */
export const namedFields: readonly string[] = ["idempotency_key", "business_id", "beneficiary", "amount"];

/** Compiles the schema once. The parser leaves the body as it is and lists at most one fault for each field. */
export function createPayoutParser(options: PayoutSchemaOptions): (body: unknown) => PayoutVerdict {
  const { referenceField, maxLengths } = options;
  const schema = z.object({
    idempotency_key: identifier(maxLengths.idempotencyKey).check(form(isIdempotencyKey, keyFault)),
    business_id: identifier(maxLengths.businessId),
    beneficiary: beneficiarySchema(maxLengths.beneficiaryName),
    // Its fields are not shown.
    amount: z.looseObject({}, anObject),
    ...referenceShape(referenceField, maxLengths.reference),
  });
  return (body) => {
    if (!isRecord(body))
      return { faults: [{ pointer: "", code: "wrong-type", detail: "must be an object" }] };
    const { data, error } = schema.safeParse(body);
    if (error !== undefined) return { faults: error.issues.map(faultOf) };
    const payout: ParsedPayout = {
      idempotencyKey: data.idempotency_key,
      idempotencyKeyParts: data.idempotency_key.split("."),
      businessId: data.business_id,
      beneficiary: data.beneficiary,
      amount: data.amount,
      reference: referenceField === undefined ? undefined : textOf(data, referenceField),
      body,
    };
    return { payout };
  };
}

function beneficiarySchema(maxNameLength: number) {
  const iban = z.string(aString).overwrite(withoutSpaces).check(form(isValidIBAN, ibanFault));
  const bic = z
    .string(aString)
    .overwrite(withoutSpaces)
    .check(form(isValidBIC, bicFault))
    // After the check, which admits ASCII alone: "ß" would become "SS".
    .overwrite((value) => value.toUpperCase());
  return z.looseObject({ iban, bic, name: boundedText(maxNameLength) }, anObject);
}

const anyControl = /\p{Cc}/u;
// A bank reference may have lines.
const controlInLines = /(?![\t\n\r])\p{Cc}/u;

const keyFault: Fault = {
  code: "invalid-idempotency-key",
  detail:
    "must be <operation_key>.<from_id>.<to_id>: at least three parts without white space around the key",
};
const identifierRule: Fault = {
  code: "invalid-identifier",
  detail: "must hold only visible, assigned characters, in Unicode normalization form C",
};
const ibanFault: Fault = { code: "invalid-iban", detail: "must be an IBAN with valid check digits" };
const bicFault: Fault = { code: "invalid-bic", detail: "must be a BIC of 8 or 11 characters" };

interface Fault {
  readonly code: PayoutFaultCode;
  readonly detail: string;
}

type Check = (payload: z.core.ParsePayload<string>) => void;

const isRequired = "is required";

function expects(type: string): { readonly error: (issue: { readonly input?: unknown }) => string } {
  return { error: ({ input }) => (input === undefined ? isRequired : `must be ${type}`) };
}

const aString = expects("a string");
const anObject = expects("an object");

function boundedText(maxLength: number, control: RegExp = anyControl): z.ZodString {
  return z.string(aString).check((payload) => {
    const { value } = payload;
    if (value.trim() === "") add(payload, { code: "empty", detail: "must not be empty" });
    else if (value.length > maxLength) {
      add(payload, { code: "too-long", detail: `must have at most ${maxLength} characters` });
    } else if (control.test(value)) {
      add(payload, { code: "control-character", detail: "must hold no control characters" });
    }
  });
}

// The reference and the name are texts for people, these are compared by machines and read by people.
function identifier(maxLength: number): z.ZodString {
  return boundedText(maxLength).check(form((value) => identifierFault(value) === undefined, identifierRule));
}

function form(isValid: (value: string) => boolean, fault: Fault): Check {
  return (payload) => {
    if (!isValid(payload.value)) add(payload, fault);
  };
}

function add(payload: z.core.ParsePayload<string>, { code, detail }: Fault): void {
  payload.issues.push({ code: "custom", params: { code }, message: detail, input: payload.value });
}

function faultOf(issue: z.core.$ZodIssue): PayoutFault {
  const { message } = issue;
  const pointer = serializePointer(issue.path);
  if (issue.code === "custom") return { pointer, code: issue.params?.["code"], detail: message };
  return { pointer, code: message === isRequired ? "required" : "wrong-type", detail: message };
}

function referenceShape(field: string | undefined, maxLength: number): Record<string, z.ZodString> {
  return field === undefined ? {} : { [field]: boundedText(maxLength, controlInLines) };
}

function textOf(data: Readonly<Record<string, unknown>>, field: string): string | undefined {
  const value = data[field];
  return typeof value === "string" ? value : undefined;
}

function withoutSpaces(value: string): string {
  return value.replaceAll(" ", "");
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Whether `key` is `<operation_key>.<from_id>.<to_id>`: at least three dot-separated parts, none blank. The alphabet of the
 * ids is not shown, so an id may hold dots itself, and more than three parts are fine.
 */
function isIdempotencyKey(key: string): boolean {
  // "a.b.c" and "a.b.c " would be one key for a person and two payments for the bank.
  if (key !== key.trim()) return false;
  const parts = key.split(".");
  return parts.length >= 3 && parts.every((part) => part.trim() !== "");
}

/**
 * The key under which the idempotency store keeps a payout, for `store.resolve()` and look-ups by an operator. `scope` is the
 * option of payoutEndpoint(), default `payout`: one store can serve other endpoints as well.
 */
export function payoutStoreKey(idempotencyKey: string, scope = "payout"): string {
  return `${scope}:${idempotencyKey}`;
}
