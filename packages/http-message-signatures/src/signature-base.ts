import { assertComputable, collectFieldLines, ComponentValues, type RequestMessage } from "./components.ts";
import type { BareItem, ComponentIdentifier, Parameters, SignatureInput } from "./field-scanner.ts";

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

/** The signature parameters value (RFC 9421 section 2.3): an inner list of identifiers with parameters, in canonical form. */
export function serializeSignatureParams(
  components: readonly ComponentIdentifier[],
  parameters: Parameters,
): string {
  let list = "";
  for (const component of components)
    list += (list === "" ? "" : " ") + serializeComponentIdentifier(component);
  return `(${list})${serializeParameters(parameters)}`;
}

/** A component identifier as it stands in the signature base (RFC 9421 section 2.5). */
function serializeComponentIdentifier({ name, parameters }: ComponentIdentifier): string {
  return parameters.size === 0
    ? serializeString(name)
    : serializeString(name) + serializeParameters(parameters);
}

function serializeParameters(parameters: Parameters): string {
  let text = "";
  for (const [key, item] of parameters) {
    text += item.type === "boolean" && item.value ? `;${key}` : `;${key}=${serializeBareItem(item)}`;
  }
  return text;
}

function serializeBareItem(item: BareItem): string {
  switch (item.type) {
    case "integer":
      return String(item.value);
    case "string":
      return serializeString(item.value);
    case "boolean":
      return item.value ? "?1" : "?0";
    case "binary":
      return `:${item.base64}:`;
    default:
      return item.text;
  }
}

function serializeString(value: string): string {
  return /["\\]/.test(value) ? `"${value.replace(/["\\]/g, "\\$&")}"` : `"${value}"`;
}
