import type { BareItem, Parameters } from "./field-scanner.ts";

/** A component identifier: a name and its parameters (RFC 9421 section 2). */
export interface ComponentIdentifier {
  readonly name: string;
  readonly parameters: Parameters;
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
export function serializeComponentIdentifier({ name, parameters }: ComponentIdentifier): string {
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
