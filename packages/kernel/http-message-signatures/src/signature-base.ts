import { derivedComponents, messageValues, type MessageValues } from "./components.ts";
import type { BareItem, Parameters } from "./field-scanner.ts";
import { fieldTypeOf, type FieldTypes } from "./field-types.ts";
import { MessageSignatureError } from "./message-signature-error.ts";
import { isResponse, type Message } from "./message.ts";
import {
  identityOf,
  serializeComponentIdentifier,
  type ComponentIdentifier,
  type SignatureInput,
} from "./signature-fields.ts";
import { assertSerializable, serializeParameters } from "./structured-field.ts";

const derivedNames: ReadonlySet<string> = new Set([...derivedComponents, "@query-param"]);
const fieldName = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;

/** The parameters of field components (RFC 9421 section 2.1), and those of `@query-param`; other derived ones have `req` alone. */
const fieldParameters: ReadonlySet<string> = new Set(["sf", "key", "bs", "tr", "req"]);
const queryParamParameters: ReadonlySet<string> = new Set(["name", "req"]);
const derivedParameters: ReadonlySet<string> = new Set(["req"]);

/**
 * Refuses a list of covered components that this kind of message cannot have, or that could be read twice: empty, repeated, of an
 * unknown derived name, not lower-case, with a parameter that is unknown or does not go with the others. Without a message it is a
 * request. Returns the identities of the components. Throws a MessageSignatureError.
 */
export function assertComputable(
  components: readonly ComponentIdentifier[],
  message?: Message,
  fieldTypes?: FieldTypes,
): ReadonlySet<string> {
  if (components.length === 0) {
    throw new MessageSignatureError("components-empty", "the signature covers no component");
  }
  const seen = new Set<string>();
  for (const component of components) {
    if (component.parameters.size > 0) assertParameters(component, message, fieldTypes);
    assertName(component, message);
    const identity = identityOf(component);
    if (seen.has(identity))
      throw new MessageSignatureError("component-duplicate", "a component is covered twice");
    seen.add(identity);
  }
  return seen;
}

function assertParameters(
  { name, parameters }: ComponentIdentifier,
  message: Message | undefined,
  fieldTypes: FieldTypes | undefined,
): void {
  const known = name.startsWith("@")
    ? name === "@query-param"
      ? queryParamParameters
      : derivedParameters
    : fieldParameters;
  for (const [key, item] of parameters) {
    if (!known.has(key) || !hasRightType(key, item))
      throw unsupported(`has no parameter ${key} of that value`);
  }
  // Section 2.4: of a response, and only where its request is at hand.
  const source = parameters.has("req") ? requestOf(message) : message;
  if (parameters.has("req") && source === undefined) throw unsupported("names a request that is not known");
  if (parameters.has("tr") && source?.rawTrailers === undefined) {
    throw unsupported("names trailers that are not known");
  }
  const isParsed = parameters.has("sf") || parameters.has("key");
  if (isParsed && parameters.has("bs")) throw unsupported("is to be both bytes and structure");
  const type = isParsed ? fieldTypeOf(name, fieldTypes) : undefined;
  if (isParsed && (type === undefined || (parameters.has("key") && type !== "dictionary"))) {
    throw unsupported("is no structured field of a known, fitting type");
  }
}

function hasRightType(key: string, item: BareItem): boolean {
  if (key === "key" || key === "name") return item.type === "string";
  return item.type === "boolean" && item.value;
}

function requestOf(message: Message | undefined): Message | undefined {
  return message !== undefined && isResponse(message) ? message.request : undefined;
}

function assertName({ name, parameters }: ComponentIdentifier, message: Message | undefined): void {
  if (name.startsWith("@")) {
    const ofResponse = message !== undefined && isResponse(message) && !parameters.has("req");
    const isKnown = ofResponse
      ? name === "@status"
      : derivedNames.has(name) && (name !== "@query-param" || parameters.has("name"));
    if (!isKnown) {
      throw new MessageSignatureError(
        "component-unsupported",
        "a derived component is covered that the message does not have",
      );
    }
  } else if (!fieldName.test(name)) {
    throw new MessageSignatureError(
      "component-name-invalid",
      "a covered component is no lower-case field name",
    );
  }
}

function unsupported(what: string): MessageSignatureError {
  return new MessageSignatureError("component-parameter-unsupported", `a covered component ${what}`);
}

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
