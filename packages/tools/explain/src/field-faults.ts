import { fieldLines } from "@countersign/core/door";
import { MessageSignatureError, parseSignatureInput } from "@countersign/http-message-signatures";
import { parseByteSequenceDictionary } from "@countersign/http-message-signatures/door";
import { explanation, explanationOf, type Explanation, type Remedy } from "./explanation.ts";
import { missesOf, type NearMiss, type Row } from "./near-miss.ts";
import { pace } from "./pace.ts";
import { search } from "./search.ts";
import type { SignatureContext } from "./signature-context.ts";
import { textForms } from "./signature-forms.ts";

type Repair = Row<(text: string) => string>;
type Parse = (text: string) => ReadonlyMap<string, unknown>;

interface Field {
  readonly name: string;
  readonly parse: Parse;
  readonly repairs: readonly Repair[];
  readonly form: Remedy;
}

/** Why Signature-Input or Signature cannot be read: the usual slip, or two, whose repair makes it readable. */
export async function explainFields({ request, code }: SignatureContext): Promise<Explanation> {
  const textOf = ({ name }: Field): string => fieldLines(request, name.toLowerCase()).join(", ");
  const field =
    faultOf(textOf(signatureInput), signatureInput.parse) === undefined ? signature : signatureInput;
  const text = textOf(field);
  const found = await repaired(text, field);
  if (found !== undefined) return explanationOf(found, code);
  const fault = faultOf(text, field.parse) ?? "is not well-formed";
  if (code === "field-limit")
    return explanation("field-too-long", code, `Make ${field.name} shorter: ${fault}.`);
  const [what, sentence] = field.form;
  return explanation(what, code, `${sentence}, since ${fault}.`);
}

// The engine's own message names the field and the rule, and holds nothing of the text.
function faultOf(text: string, parse: Parse): string | undefined {
  try {
    parse(text);
    return undefined;
  } catch (error) {
    return error instanceof MessageSignatureError ? error.message : "is not well-formed";
  }
}

const maxRepaired = 4096;

async function repaired(
  text: string,
  { repairs, parse }: Field,
): Promise<readonly NearMiss<string>[] | undefined> {
  if (text.length > maxRepaired) return undefined;
  const misses = repairs.flatMap(([what, sentence, apply], index) =>
    missesOf<string, (text: string) => string>([[what, sentence, apply, "usual"]], {
      part: String(index),
      says: (how) => how,
      put: (changed, repair) => repair(changed),
    }),
  );
  const fits = (changed: string): boolean => faultOf(changed, parse) === undefined && parse(changed).size > 0;
  const { found } = await search({ drafts: [text], misses, fits, pace });
  return found === undefined || found.misses.length === 0 ? undefined : found.misses;
}

function inList(text: string, change: (list: string) => string): string {
  return text.replaceAll(/\(([^()]*)\)/g, (_, list: string) => `(${change(list)})`);
}

function behindList(text: string, change: (rest: string) => string): string {
  const end = text.lastIndexOf(")");
  return end === -1 ? text : text.slice(0, end + 1) + change(text.slice(end + 1));
}

const inputRepairs: readonly Repair[] = [
  [
    "signature-input-escaped-quotes",
    'Write the quotes of Signature-Input as " alone, without a backslash before them.',
    [(text) => text.replaceAll('\\"', '"')],
  ],
  [
    "signature-input-single-quotes",
    "Write the texts of Signature-Input in double quotes, not in single ones.",
    [(text) => text.replaceAll(/['\u2018\u2019\u201c\u201d]/g, '"')],
  ],
  [
    "signature-input-quoted",
    "Write Signature-Input without quotes around all of it.",
    [(text) => text.replace(/^"(.*)"$/, "$1")],
  ],
  [
    "signature-input-without-label",
    "Begin Signature-Input with a label, sig1=(...), the one that Signature has.",
    [(text) => (text.trim().startsWith("(") ? `sig1=${text.trim()}` : text)],
  ],
  [
    "signature-input-colon",
    "Put an equals sign behind the label of Signature-Input, not a colon.",
    [(text) => text.replace(/^([a-z*][a-z0-9_.*-]*)\s*[:]\s*\(/, "$1=(")],
  ],
  [
    "signature-input-label-letter-case",
    "Write the label of Signature-Input in lower case.",
    [(text) => text.replace(/^[A-Za-z0-9_.*-]+=/, (label) => label.toLowerCase())],
  ],
  [
    "signature-input-list-commas",
    "Separate the components of Signature-Input by blanks, without commas.",
    [(text) => inList(text, (list) => list.replaceAll(/\s*,\s*/g, " "))],
  ],
  [
    "signature-input-list-unquoted",
    'Write each component of Signature-Input in double quotes, such as "@method".',
    [(text) => inList(text, (list) => list.replaceAll(/(?<![^\s])[^\s"]+(?![^\s])/g, '"$&"'))],
  ],
  [
    "signature-input-list-form",
    "Write the components of Signature-Input in parentheses.",
    [
      (text) =>
        text.replace(/=\s*[[{]([^\]}]*)[\]}]/, (_, list: string) => `=(${list.replaceAll(",", " ")})`),
    ],
  ],
  [
    "signature-input-list-form",
    "Write the components of Signature-Input in parentheses.",
    [(text) => text.replace(/=\s*("@?[^;()]*)/, (_, list: string) => `=(${list.trim()})`)],
  ],
  [
    "signature-input-spacing",
    "Write Signature-Input without white space around semicolons and equals signs.",
    [(text) => text.replaceAll(/\s*([;=])\s*/g, "$1")],
  ],
  [
    "signature-input-parameter-letter-case",
    "Write the names of the parameters of Signature-Input in lower case, keyid and not keyId.",
    [(text) => behindList(text, (rest) => rest.replaceAll(/;[A-Za-z]+=/g, (name) => name.toLowerCase()))],
  ],
  [
    "signature-input-separator",
    "Separate the parameters of Signature-Input by semicolons, not by commas.",
    [(text) => behindList(text, (rest) => rest.replaceAll(/,\s*/g, ";"))],
  ],
  [
    "signature-input-end",
    "End Signature-Input with its last parameter, without a semicolon or comma behind it.",
    [(text) => text.replace(/[;,\s]$/, "")],
  ],
  [
    "signature-input-created-date",
    "Write created and expires in Signature-Input as Unix seconds, a whole number without an @.",
    [(text) => text.replaceAll(/;(created|expires)=@/g, ";$1=")],
  ],
  [
    "signature-input-created-date",
    "Write created and expires in Signature-Input as Unix seconds, not as a date.",
    [(text) => text.replaceAll(/;(created|expires)="?\d{4}-[^;"]*"?/g, ";$1=1")],
  ],
  [
    "signature-input-unquoted",
    "Write keyid, alg and nonce of Signature-Input in double quotes.",
    [(text) => text.replaceAll(/;(keyid|alg|nonce|tag)=([^";]*)/g, ';$1="$2"')],
  ],
  [
    "signature-input-parameter-repeated",
    "Write each parameter of Signature-Input once.",
    [(text) => behindList(text, withoutRepeated)],
  ],
  [
    "signature-input-label-repeated",
    "Send one Signature-Input, or give each of its members a label of its own.",
    [(text) => text.slice(0, Math.floor(text.length / 2) - 1)],
  ],
  [
    "signature-input-not-ascii",
    "Write Signature-Input in ASCII.",
    [(text) => text.replaceAll(/[^\x20-\x7e]/g, "_")],
  ],
];

function withoutRepeated(parameters: string): string {
  const seen = new Set<string>();
  return parameters
    .split(";")
    .filter((text) => {
      const [name = ""] = text.split("=");
      const isNew = !seen.has(name);
      seen.add(name);
      return isNew;
    })
    .join(";");
}

const aSignature = ":c2lnbmF0dXJl:";

/** A repair of what stands behind the label: by the form that it is found to have. */
function formRepair(what: string, sentence: string, isIt: (value: string) => boolean): Repair {
  const repair = (text: string): string => {
    const [, label, value = ""] = /^\s*([a-z*][a-z0-9_.*-]*)=(.*)$/s.exec(text) ?? [];
    return label !== undefined && isIt(value.trim()) ? `${label}=${aSignature}` : text;
  };
  return [what, sentence, [repair]];
}

const hasForm =
  (what: string) =>
  (value: string): boolean =>
    textForms(value).some((form) => form.what === what);

const between = (value: string): string => value.replace(/^["']?:?/, "").replace(/:?["']?$/, "");

const signatureRepairs: readonly Repair[] = [
  [
    "signature-without-label",
    "Begin Signature with the label of Signature-Input, and put its base64 between colons: sig1=:<base64>:.",
    [(text) => (/^\s*:?["']?[A-Za-z0-9+/_-]{40,}={0,2}["']?:?\s*$/.test(text) ? `sig1=${aSignature}` : text)],
  ],
  [
    "signature-cavage",
    "Write Signature as sig1=:<base64>:, the form of RFC 9421: it has that of the older draft-cavage-http-signatures.",
    [(text) => (/keyId\s*=\s*"/i.test(text) ? `sig1=${aSignature}` : text)],
  ],
  [
    "signature-colon",
    "Put an equals sign behind the label of Signature, not a colon.",
    [(text) => text.replace(/^([a-z*][a-z0-9_.*-]*)\s*:\s*:?([A-Za-z0-9+/]+={0,2}):?$/, "$1=:$2:")],
  ],
  [
    "signature-label-letter-case",
    "Write the label of Signature in lower case, as in Signature-Input.",
    [(text) => text.replace(/^[A-Za-z0-9_.*-]+=:/, (label) => label.toLowerCase())],
  ],
  formRepair(
    "signature-hex",
    "Write the signature of Signature in base64 between colons: it is there in hex.",
    (value) => hasForm("signature-hex")(value) && /^[0-9a-fx: "']+$/i.test(value),
  ),
  formRepair(
    "signature-quoted",
    "Put the base64 of Signature between colons, sig1=:<base64>:, not in quotes.",
    (value) => /^["'][A-Za-z0-9+/]+={0,2}["']$/.test(value),
  ),
  formRepair(
    "signature-without-colons",
    "Put the base64 of Signature between colons: sig1=:<base64>:.",
    (value) => /^:?[A-Za-z0-9+/]+={0,2}:?$/.test(value) && !(value.startsWith(":") && value.endsWith(":")),
  ),
  formRepair(
    "signature-base64url",
    "Write the signature of Signature in base64, with + and /: it is there in base64url.",
    (value) => hasForm("signature-base64url")(value) && /[-_]/.test(value),
  ),
  formRepair(
    "signature-without-padding",
    "Write the base64 of Signature with its padding, the = at its end.",
    (value) => /^[A-Za-z0-9+/]+$/.test(between(value)) && between(value).length % 4 !== 0,
  ),
  formRepair(
    "signature-white-space",
    "Write the base64 of Signature without white space or line ends in it.",
    (value) => /^[A-Za-z0-9+/\s]+={0,2}\s*$/.test(between(value)) && /\s/.test(value),
  ),
  formRepair(
    "signature-empty",
    "Put the signature into Signature: there is none between its colons.",
    (value) => /^:?\s*:?$/.test(value),
  ),
  [
    "signature-parameters",
    "Write the parameters into Signature-Input alone: Signature has some behind its bytes.",
    [(text) => text.replace(/(:[A-Za-z0-9+/]+={0,2}:);.*$/, "$1")],
  ],
  [
    "signature-label-repeated",
    "Send one Signature, or give each of its members a label of its own.",
    [(text) => text.split(",")[0] ?? text],
  ],
];

const signatureInput: Field = {
  name: "Signature-Input",
  parse: parseSignatureInput,
  repairs: inputRepairs,
  form: [
    "signature-input-form",
    'Write Signature-Input as sig1=("@method" "@path");created=1700000000;keyid="..."',
  ],
};
const signature: Field = {
  name: "Signature",
  parse: (text) => parseByteSequenceDictionary(text, "Signature"),
  repairs: signatureRepairs,
  form: ["signature-form", "Write Signature as sig1=:<base64>:"],
};
