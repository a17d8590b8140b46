import { assertComputable, ComponentValues } from "./components.ts";
import { collectFieldLines, type RequestMessage } from "./request-message.ts";
import { serializeComponentIdentifier, serializeSignatureParams } from "./serialize.ts";
import type { SignatureInput } from "./signature-input.ts";

/**
 * The signature base of a request (RFC 9421 section 2.5), ASCII. It is built from parsed values by one canonical
 * serialiser, so that two different inputs never give one base. Throws a MessageSignatureError when a component is
 * unknown, repeated, absent or not computable.
 */
export function createSignatureBase(message: RequestMessage, input: SignatureInput): string {
  assertComputable(input.components);
  return buildSignatureBase(new ComponentValues(message, collectFieldLines(message.rawHeaders)), input);
}

/** As {@link createSignatureBase}, for a message that is taken apart already and components that passed assertComputable. */
export function buildSignatureBase(values: ComponentValues, input: SignatureInput): string {
  let base = "";
  for (const component of input.components) {
    base += `${serializeComponentIdentifier(component)}: ${values.valueOf(component.name)}\n`;
  }
  return `${base}"@signature-params": ${serializeSignatureParams(input.components, input.parameters)}`;
}
