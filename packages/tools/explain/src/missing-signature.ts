import { fieldLines } from "@countersign/core";
import { parseByteSequenceDictionary, parseSignatureInput } from "@countersign/http-message-signatures";
import type { SignatureContext } from "./signature-context.ts";
import { explanation, quoted, type Explanation } from "./explanation.ts";

const code = "signature-missing";

/** Why no label stands in both fields. */
export function explainMissingSignature({ request, check }: SignatureContext): Explanation {
  const inputs = fieldLines(request, "signature-input");
  const signatures = fieldLines(request, "signature");
  const cavage = [...signatures, ...fieldLines(request, "authorization")].find((line) =>
    /\bkeyId\s*=\s*"/i.test(line.slice(0, 4096)),
  );
  if (cavage !== undefined && inputs.length === 0) {
    return explanation(
      "signature-cavage",
      code,
      "Sign by RFC 9421, with the fields Signature-Input and Signature: the request has a signature of the older draft-cavage-http-signatures.",
    );
  }
  if (inputs.length === 0 || signatures.length === 0) {
    return explainAbsent(request.rawHeaders, inputs.length > 0, signatures.length > 0);
  }
  return explainLabels(inputs.join(", "), signatures.join(", "), check.label);
}

function explainAbsent(rawHeaders: readonly string[], hasInput: boolean, hasSignature: boolean): Explanation {
  const names = rawHeaders.filter((_, index) => index % 2 === 0);
  const like = (wanted: string): string | undefined =>
    names.find((name) => {
      const plain = name.toLowerCase().replaceAll(/[^a-z]/g, "");
      return plain === wanted || plain === `x${wanted}`;
    });
  const input = hasInput ? undefined : like("signatureinput");
  const signature = hasSignature ? undefined : like("signature");
  const [name, wanted] =
    input !== undefined
      ? [input, "Signature-Input"]
      : [signature ?? "", signature === undefined ? "" : "Signature"];
  if (wanted !== "" && name !== "") {
    return explanation(
      "signature-field-name",
      code,
      `Send ${wanted} under that name: the request has ${quoted(name)}.`,
    );
  }
  if (!hasInput && !hasSignature) {
    return explanation(
      "signature-absent",
      code,
      "Send Signature-Input and Signature: the request has neither of them.",
    );
  }
  const missing = hasInput ? "Signature" : "Signature-Input";
  return explanation(
    hasInput ? "signature-field-absent" : "signature-input-absent",
    code,
    `Send ${missing} too: the request has ${hasInput ? "Signature-Input" : "Signature"} alone.`,
  );
}

function explainLabels(inputs: string, signatures: string, label: string | undefined): Explanation {
  const inputLabels = labelsOf(() => parseSignatureInput(inputs));
  const signatureLabels = labelsOf(() => parseByteSequenceDictionary(signatures));
  const shared = inputLabels.filter((each) => signatureLabels.includes(each));
  const [inputLabel = ""] = inputLabels;
  const [signatureLabel = ""] = signatureLabels;
  return shared.length > 0 && label !== undefined
    ? explanation(
        "label-not-looked-at",
        code,
        `Give the signature the label ${quoted(label)}, the only one that is looked at: it has ${quoted(shared[0] ?? "")}.`,
      )
    : explanation(
        "labels-differ",
        code,
        `Give the signature the same label in both fields: it is ${quoted(inputLabel)} in Signature-Input and ${quoted(signatureLabel)} in Signature.`,
      );
}

function labelsOf(parse: () => ReadonlyMap<string, unknown>): readonly string[] {
  try {
    return [...parse().keys()];
  } catch {
    return [];
  }
}
