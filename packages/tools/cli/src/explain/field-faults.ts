import { fieldLines } from "@countersign/core/internal";
import { MessageSignatureError, parseSignatureInput } from "@countersign/http-message-signatures";
import { parseByteSequenceDictionary } from "@countersign/http-message-signatures/internal";
import { explanation, type Explanation } from "./explanation.ts";
import type { NearMiss } from "./near-miss.ts";
import { pace } from "./pace.ts";
import { remedy, type Told } from "./remedies.ts";
import { remedyOfMisses, search } from "./search.ts";
import type { SignatureContext } from "./signature-context.ts";

/** A mistake that keeps a field from being read, as what repairs it. */
type Repair = readonly [
  what: Told,
  find: RegExp,
  put: string | ((found: string, ...groups: string[]) => string),
  form?: string,
];

interface Field {
  readonly name: "Signature" | "Signature-Input";
  readonly parse: (text: string) => ReadonlyMap<string, unknown>;
  readonly repairs: readonly Repair[];
  readonly form: "signature-form" | "signature-input-form";
}

/** Finds the mistake, or two, whose repair makes Signature-Input or Signature readable. */
export async function explainFields({ request, code }: SignatureContext): Promise<Explanation> {
  const textOf = ({ name }: Field): string => fieldLines(request, name.toLowerCase()).join(", ");
  const isReadable = faultOf(textOf(signatureInput), signatureInput.parse) === undefined;
  const field = isReadable ? signature : signatureInput;
  const text = textOf(field);
  const found = await repaired(text, field);
  if (found.length > 0) return explanation(remedyOfMisses(found), code);
  const fault = faultOf(text, field.parse) ?? "is not well-formed";
  return code === "field-limit"
    ? explanation(remedy("field-too-long", { field: field.name, fault }), code)
    : explanation(remedy(field.form, { fault }), code);
}

// The engine's message names the field and the rule, never text of the request.
function faultOf(text: string, parse: Field["parse"]): string | undefined {
  try {
    parse(text);
    return undefined;
  } catch (error) {
    return error instanceof MessageSignatureError ? error.message : "is not well-formed";
  }
}

const maxRepaired = 4096;

async function repaired(text: string, { repairs, parse }: Field): Promise<readonly NearMiss<string>[]> {
  if (text.length > maxRepaired) return [];
  const misses = repairs.map(([what, find, put, form = ""], index): NearMiss<string> => ({
    what,
    says: remedy(what, { form })[1],
    part: String(index),
    isUsual: true,
    change: (old) => (typeof put === "string" ? old.replace(find, put) : old.replace(find, put)),
  }));
  const fits = (changed: string): boolean => faultOf(changed, parse) === undefined && parse(changed).size > 0;
  const { found } = await search({ drafts: [text], misses, fits, pace });
  return found?.misses ?? [];
}

const list = /\(([^()]*)\)/g;
const inLowerCase = (text: string): string => text.toLowerCase();

const inputRepairs: readonly Repair[] = [
  ["signature-input-escaped-quotes", /\\"/g, '"'],
  ["signature-input-single-quotes", /['\u2018\u2019\u201c\u201d]/g, '"'],
  ["signature-input-without-label", /^\s*(?=\()/, "sig1="],
  ["signature-input-list-commas", list, (found) => found.replaceAll(/\s*,\s*/g, " ")],
  [
    "signature-input-list-unquoted",
    list,
    (found) => found.replaceAll(/(?<=[\s(])[^\s"()]+(?=[\s)])/g, '"$&"'),
  ],
  ["signature-input-parameter-letter-case", /;[A-Za-z]+=(?=[^)]*$)/g, inLowerCase],
  ["signature-input-separator", /,\s*(?=[^)]*$)/g, ";"],
  ["signature-input-created-date", /;(created|expires)=@/g, ";$1=", "a whole number without an @"],
  ["signature-input-created-date", /;(created|expires)="?\d{4}-[^;"]*"?/g, ";$1=1", "not as a date"],
];

const aSignature = ":c2lnbmF0dXJl:";

const otherForms: readonly (readonly [what: Repair[0], form: RegExp])[] = [
  ["signature-hex", /^["':]*(?:0x)?(?:[0-9a-f]{2}[: ]?)+["':]*$/i],
  ["signature-quoted", /^["'][A-Za-z0-9+/]+={0,2}["']$/],
  ["signature-without-colons", /^(?!:.*:$):?[A-Za-z0-9+/]+={0,2}:?$/],
  ["signature-base64url", /^["':]*(?=[^-_]*[-_])[\w-]+={0,2}["':]*$/],
  ["signature-without-padding", /^["']?:?(?:[A-Za-z0-9+/]{4})*[A-Za-z0-9+/]{1,3}:?["']?$/],
];

const signatureRepairs: readonly Repair[] = [
  ["signature-without-label", /^\s*:?["']?[A-Za-z0-9+/_-]{40,}={0,2}["']?:?\s*$/, `sig1=${aSignature}`],
  ...otherForms.map(([what, form]): Repair => [
    what,
    /^\s*([a-z*][a-z0-9_.*-]*=)(.*)$/s,
    (found, label, value) => (form.test(value.trim()) ? label + aSignature : found),
  ]),
];

const signatureInput: Field = {
  name: "Signature-Input",
  parse: parseSignatureInput,
  repairs: inputRepairs,
  form: "signature-input-form",
};
const signature: Field = {
  name: "Signature",
  parse: (text) => parseByteSequenceDictionary(text, "Signature"),
  repairs: signatureRepairs,
  form: "signature-form",
};
