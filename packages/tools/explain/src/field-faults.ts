import { fieldLines } from "@countersign/core";
import {
  MessageSignatureError,
  parseByteSequenceDictionary,
  parseSignatureInput,
} from "@countersign/http-message-signatures";
import type { SignatureContext } from "./signature-context.ts";
import { explanation, type Explanation } from "./explanation.ts";
import { textForms } from "./signature-forms.ts";

/** A change after which a field can be read. */
interface Repair {
  readonly what: string;
  /** What the signer has to change. */
  readonly sentence: string;
  readonly apply: (text: string) => string;
}

/** Why Signature-Input or Signature cannot be read: the first usual slip whose repair makes it readable. */
export function explainFields({ request, code }: SignatureContext): Explanation {
  const inputs = fieldLines(request, "signature-input");
  const signatures = fieldLines(request, "signature");
  const input = inputs.join(", ");
  const fault = faultOf(() => parseSignatureInput(input));
  if (fault !== undefined) {
    return (
      repaired(input, inputRepairs, (text) => parseSignatureInput(text), code) ??
      unrepaired("Signature-Input", fault, code)
    );
  }
  const signature = signatures.join(", ");
  const otherFault = faultOf(() => parseByteSequenceDictionary(signature, "Signature"));
  return (
    repaired(signature, signatureRepairs, (text) => parseByteSequenceDictionary(text, "Signature"), code) ??
    unrepaired("Signature", otherFault ?? "is not well-formed", code)
  );
}

function faultOf(parse: () => unknown): string | undefined {
  try {
    parse();
    return undefined;
  } catch (error) {
    return error instanceof MessageSignatureError ? error.message : "is not well-formed";
  }
}

// The engine's own message names the field and the rule, and holds nothing of the text.
function unrepaired(field: string, fault: string, code: string | undefined): Explanation {
  const isLong = code === "field-limit";
  return explanation(
    isLong ? "field-too-long" : field === "Signature" ? "signature-form" : "signature-input-form",
    code,
    isLong
      ? `Make ${field} shorter: ${fault}.`
      : field === "Signature"
        ? `Write Signature as sig1=:<base64>:, since ${fault}.`
        : `Write Signature-Input as sig1=("@method" "@path");created=1700000000;keyid="...", since ${fault}.`,
  );
}

const maxRepaired = 4096;

function repaired(
  text: string,
  repairs: readonly Repair[],
  parse: (text: string) => ReadonlyMap<string, unknown>,
  code: string | undefined,
): Explanation | undefined {
  if (text.length > maxRepaired) return undefined;
  const reads = (changed: string): boolean => {
    try {
      return parse(changed).size > 0;
    } catch {
      return false;
    }
  };
  const one = repairs.find(({ apply }) => apply(text) !== text && reads(apply(text)));
  if (one !== undefined) return explanation(one.what, code, one.sentence);
  let changed = text;
  const applied: Repair[] = [];
  for (const repair of repairs) {
    const next = repair.apply(changed);
    if (next === changed) continue;
    changed = next;
    applied.push(repair);
    if (reads(changed)) {
      return explanation(
        applied.map(({ what }) => what).join("+"),
        code,
        applied.map(({ sentence }) => sentence).join(" "),
      );
    }
  }
  return undefined;
}

function inList(text: string, change: (list: string) => string): string {
  return text.replaceAll(/\(([^()]*)\)/g, (_, list: string) => `(${change(list)})`);
}

function behindList(text: string, change: (rest: string) => string): string {
  const end = text.lastIndexOf(")");
  return end === -1 ? text : text.slice(0, end + 1) + change(text.slice(end + 1));
}

const inputRepairs: readonly Repair[] = [
  {
    what: "signature-input-escaped-quotes",
    sentence: 'Write the quotes of Signature-Input as " alone, without a backslash before them.',
    apply: (text) => text.replaceAll('\\"', '"'),
  },
  {
    what: "signature-input-single-quotes",
    sentence: "Write the texts of Signature-Input in double quotes, not in single ones.",
    apply: (text) => text.replaceAll(/['\u2018\u2019\u201c\u201d]/g, '"'),
  },
  {
    what: "signature-input-quoted",
    sentence: "Write Signature-Input without quotes around all of it.",
    apply: (text) => text.replace(/^"(.*)"$/, "$1"),
  },
  {
    what: "signature-input-without-label",
    sentence: "Begin Signature-Input with a label, sig1=(...), the one that Signature has.",
    apply: (text) => (text.trim().startsWith("(") ? `sig1=${text.trim()}` : text),
  },
  {
    what: "signature-input-colon",
    sentence: "Put an equals sign behind the label of Signature-Input, not a colon.",
    apply: (text) => text.replace(/^([a-z*][a-z0-9_.*-]*)\s*[:]\s*\(/, "$1=("),
  },
  {
    what: "signature-input-label-letter-case",
    sentence: "Write the label of Signature-Input in lower case.",
    apply: (text) => text.replace(/^[A-Za-z0-9_.*-]+=/, (label) => label.toLowerCase()),
  },
  {
    what: "signature-input-list-commas",
    sentence: "Separate the components of Signature-Input by blanks, without commas.",
    apply: (text) => inList(text, (list) => list.replaceAll(/\s*,\s*/g, " ")),
  },
  {
    what: "signature-input-list-unquoted",
    sentence: 'Write each component of Signature-Input in double quotes, such as "@method".',
    apply: (text) => inList(text, (list) => list.replaceAll(/(?<![^\s])[^\s"]+(?![^\s])/g, '"$&"')),
  },
  {
    what: "signature-input-list-form",
    sentence: "Write the components of Signature-Input in parentheses.",
    apply: (text) =>
      text.replace(/=\s*[[{]([^\]}]*)[\]}]/, (_, list: string) => `=(${list.replaceAll(",", " ")})`),
  },
  {
    what: "signature-input-list-form",
    sentence: "Write the components of Signature-Input in parentheses.",
    apply: (text) => text.replace(/=\s*("@?[^;()]*)/, (_, list: string) => `=(${list.trim()})`),
  },
  {
    what: "signature-input-spacing",
    sentence: "Write Signature-Input without white space around semicolons and equals signs.",
    apply: (text) => text.replaceAll(/\s*([;=])\s*/g, "$1"),
  },
  {
    what: "signature-input-parameter-letter-case",
    sentence: "Write the names of the parameters of Signature-Input in lower case, keyid and not keyId.",
    apply: (text) =>
      behindList(text, (rest) => rest.replaceAll(/;[A-Za-z]+=/g, (name) => name.toLowerCase())),
  },
  {
    what: "signature-input-separator",
    sentence: "Separate the parameters of Signature-Input by semicolons, not by commas.",
    apply: (text) => behindList(text, (rest) => rest.replaceAll(/,\s*/g, ";")),
  },
  {
    what: "signature-input-end",
    sentence: "End Signature-Input with its last parameter, without a semicolon or comma behind it.",
    apply: (text) => text.replace(/[;,\s]$/, ""),
  },
  {
    what: "signature-input-created-date",
    sentence: "Write created and expires in Signature-Input as Unix seconds, a whole number without an @.",
    apply: (text) => text.replaceAll(/;(created|expires)=@/g, ";$1="),
  },
  {
    what: "signature-input-created-date",
    sentence: "Write created and expires in Signature-Input as Unix seconds, not as a date.",
    apply: (text) => text.replaceAll(/;(created|expires)="?\d{4}-[^;"]*"?/g, ";$1=1"),
  },
  {
    what: "signature-input-unquoted",
    sentence: "Write keyid, alg and nonce of Signature-Input in double quotes.",
    apply: (text) => text.replaceAll(/;(keyid|alg|nonce|tag)=([^";]*)/g, ';$1="$2"'),
  },
  {
    what: "signature-input-parameter-repeated",
    sentence: "Write each parameter of Signature-Input once.",
    apply: (text) => behindList(text, withoutRepeated),
  },
  {
    what: "signature-input-label-repeated",
    sentence: "Send one Signature-Input, or give each of its members a label of its own.",
    apply: (text) => text.slice(0, Math.floor(text.length / 2) - 1),
  },
  {
    what: "signature-input-not-ascii",
    sentence: "Write Signature-Input in ASCII.",
    apply: (text) => text.replaceAll(/[^\x20-\x7e]/g, "_"),
  },
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
  return {
    what,
    sentence,
    apply: (text) => {
      const [, label, value = ""] = /^\s*([a-z*][a-z0-9_.*-]*)=(.*)$/s.exec(text) ?? [];
      return label !== undefined && isIt(value.trim()) ? `${label}=${aSignature}` : text;
    },
  };
}

const hasForm =
  (what: string) =>
  (value: string): boolean =>
    textForms(value).some((form) => form.what === what);

const between = (value: string): string => value.replace(/^["']?:?/, "").replace(/:?["']?$/, "");

const signatureRepairs: readonly Repair[] = [
  {
    what: "signature-without-label",
    sentence:
      "Begin Signature with the label of Signature-Input, and put its base64 between colons: sig1=:<base64>:.",
    apply: (text) =>
      /^\s*:?["']?[A-Za-z0-9+/_-]{40,}={0,2}["']?:?\s*$/.test(text) ? `sig1=${aSignature}` : text,
  },
  {
    what: "signature-cavage",
    sentence:
      "Write Signature as sig1=:<base64>:, the form of RFC 9421: it has that of the older draft-cavage-http-signatures.",
    apply: (text) => (/keyId\s*=\s*"/i.test(text) ? `sig1=${aSignature}` : text),
  },
  {
    what: "signature-colon",
    sentence: "Put an equals sign behind the label of Signature, not a colon.",
    apply: (text) => text.replace(/^([a-z*][a-z0-9_.*-]*)\s*:\s*:?([A-Za-z0-9+/]+={0,2}):?$/, "$1=:$2:"),
  },
  {
    what: "signature-label-letter-case",
    sentence: "Write the label of Signature in lower case, as in Signature-Input.",
    apply: (text) => text.replace(/^[A-Za-z0-9_.*-]+=:/, (label) => label.toLowerCase()),
  },
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
  {
    what: "signature-parameters",
    sentence: "Write the parameters into Signature-Input alone: Signature has some behind its bytes.",
    apply: (text) => text.replace(/(:[A-Za-z0-9+/]+={0,2}:);.*$/, "$1"),
  },
  {
    what: "signature-label-repeated",
    sentence: "Send one Signature, or give each of its members a label of its own.",
    apply: (text) => text.split(",")[0] ?? text,
  },
];
