import { fieldLines } from "@countersign/core/door";
import { parseByteSequenceDictionary } from "@countersign/http-message-signatures/door";
import { parseSignatureInput } from "@countersign/http-message-signatures";
import { quoted, type Remedy } from "./explanation.ts";
import type { SignatureContext } from "./signature-context.ts";

/** Why no label stands in both fields. */
export function explainMissingSignature({ request, check }: SignatureContext): Remedy {
  const inputs = fieldLines(request, "signature-input");
  const signatures = fieldLines(request, "signature");
  const isCavage = [...signatures, ...fieldLines(request, "authorization")].some((line) =>
    /\bkeyId\s*=\s*"/i.test(line.slice(0, 4096)),
  );
  if (isCavage && inputs.length === 0) {
    return [
      "signature-cavage",
      "Sign by RFC 9421, with the fields Signature-Input and Signature: the request has a signature of the older draft-cavage-http-signatures.",
    ];
  }
  const names = request.rawHeaders.filter((_, index) => index % 2 === 0);
  const like = (wanted: string): string | undefined =>
    names.find((name) => {
      const plain = name.toLowerCase().replaceAll(/[^a-z]/g, "");
      return plain === wanted || plain === `x${wanted}`;
    });
  const input = inputs.length > 0 ? undefined : like("signatureinput");
  const signature = signatures.length > 0 ? undefined : like("signature");
  if (input !== undefined) return otherName("Signature-Input", input);
  if (signature !== undefined) return otherName("Signature", signature);
  if (inputs.length > 0 && signatures.length > 0) {
    return explainLabels(inputs.join(", "), signatures.join(", "), check.label);
  }
  if (inputs.length > 0) {
    return ["signature-field-absent", "Send Signature too: the request has Signature-Input alone."];
  }
  return signatures.length > 0
    ? ["signature-input-absent", "Send Signature-Input too: the request has Signature alone."]
    : ["signature-absent", "Send Signature-Input and Signature: the request has neither of them."];
}

function otherName(wanted: string, name: string): Remedy {
  return ["signature-field-name", `Send ${wanted} under that name: the request has ${quoted(name)}.`];
}

function explainLabels(inputs: string, signatures: string, label: string | undefined): Remedy {
  const inputLabels = labelsOf(() => parseSignatureInput(inputs));
  const signatureLabels = labelsOf(() => parseByteSequenceDictionary(signatures));
  const shared = inputLabels.find((each) => signatureLabels.includes(each));
  if (shared !== undefined && label !== undefined) {
    return [
      "label-not-looked-at",
      `Give the signature the label ${quoted(label)}, the only one that is looked at: it has ${quoted(shared)}.`,
    ];
  }
  const [inputLabel = ""] = inputLabels;
  const [signatureLabel = ""] = signatureLabels;
  return [
    "labels-differ",
    `Give the signature the same label in both fields: it is ${quoted(inputLabel)} in Signature-Input and ${quoted(signatureLabel)} in Signature.`,
  ];
}

function labelsOf(parse: () => ReadonlyMap<string, unknown>): readonly string[] {
  try {
    return [...parse().keys()];
  } catch {
    return [];
  }
}
