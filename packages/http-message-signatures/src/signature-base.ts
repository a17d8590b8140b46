import { serializeComponentIdentifier } from "./component-identifier.ts";
import { messageValues, type MessageValues } from "./components.ts";
import { assertComputable } from "./computable.ts";
import type { Parameters } from "./field-scanner.ts";
import type { FieldTypes } from "./field-types.ts";
import type { Message } from "./message.ts";
import type { ComponentIdentifier, SignatureInput } from "./signature-fields.ts";
import { assertSerializable, serializeParameters } from "./structured-field.ts";

/**
 * The signature base of a message (RFC 9421 section 2.5), ASCII. It is built from parsed values by one canonical
 * serialiser, so that two different inputs never give one base. Throws a MessageSignatureError when a component is
 * unknown, repeated, absent or not computable.
 */
export function createSignatureBase(
  message: Message,
  input: SignatureInput,
  fieldTypes?: FieldTypes,
): string {
  assertComputable(input.components, message, fieldTypes);
  assertSerializable(input.parameters);
  return buildSignatureBase(messageValues(message, undefined, fieldTypes), input);
}

/** As {@link createSignatureBase}, for a message that is taken apart already and components that passed assertComputable. */
export function buildSignatureBase(values: MessageValues, input: SignatureInput): string {
  let base = "";
  for (const component of input.components) {
    base += `${serializeComponentIdentifier(component)}: ${values.valueOf(component.name, component.parameters)}\n`;
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
