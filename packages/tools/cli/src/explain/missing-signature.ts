import { fieldLines } from "@countersign/core/internal";
import { parseByteSequenceDictionary } from "@countersign/http-message-signatures/internal";
import { parseSignatureInput } from "@countersign/http-message-signatures";
import { quoted, type Remedy } from "./explanation.ts";
import { remedy } from "./remedies.ts";
import type { SignatureContext } from "./signature-context.ts";

export function explainMissingSignature({ request, check }: SignatureContext): Remedy {
  const inputs = fieldLines(request, "signature-input");
  const signatures = fieldLines(request, "signature");
  const isCavage = [...signatures, ...fieldLines(request, "authorization")].some((line) =>
    /\bkeyId\s*=\s*"/i.test(line.slice(0, 4096)),
  );
  if (isCavage && inputs.length === 0) return remedy("signature-cavage");
  for (const [field, lines] of [
    ["Signature-Input", inputs],
    ["Signature", signatures],
  ] as const) {
    const found = lines.length > 0 ? undefined : nameLike(plain(field), request.rawHeaders);
    if (found !== undefined) return remedy("signature-field-name", { field, found: quoted(found) });
  }
  if (inputs.length > 0 && signatures.length > 0) {
    return explainLabels(inputs.join(", "), signatures.join(", "), check.label);
  }
  if (inputs.length > 0) return remedy("signature-field-absent");
  return remedy(signatures.length > 0 ? "signature-input-absent" : "signature-absent");
}

function nameLike(wanted: string, rawHeaders: readonly string[]): string | undefined {
  return rawHeaders.find((name, index) => index % 2 === 0 && [wanted, `x${wanted}`].includes(plain(name)));
}

export function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z]/g, "");
}

function explainLabels(inputs: string, signatures: string, label: string | undefined): Remedy {
  const inputLabels = labelsOf(() => parseSignatureInput(inputs));
  const signatureLabels = labelsOf(() => parseByteSequenceDictionary(signatures));
  const shared = inputLabels.find((each) => signatureLabels.includes(each));
  if (shared !== undefined && label !== undefined) {
    return remedy("label-not-looked-at", { label: quoted(label), found: quoted(shared) });
  }
  const [input = ""] = inputLabels;
  const [signature = ""] = signatureLabels;
  return remedy("labels-differ", { input: quoted(input), signature: quoted(signature) });
}

function labelsOf(parse: () => ReadonlyMap<string, unknown>): readonly string[] {
  try {
    return [...parse().keys()];
  } catch {
    return [];
  }
}
