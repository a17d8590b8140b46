import { derivedComponents, MessageValues } from "./components.ts";
import {
  FieldScanner,
  serializeParameters,
  serializeString,
  type BareItem,
  type Parameters,
} from "./field-scanner.ts";
import { maxComponents } from "./limits.ts";
import { MessageSignatureError } from "./message-signature-error.ts";
import { fieldTypeOf, type FieldTypes, isResponse, type Message } from "./message.ts";
import { assertSerializable } from "./structured-field.ts";

/**
 * Reads byte sequences by key: Signature (RFC 9421 section 4.2), Content-Digest (RFC 9530 section 2). Stricter than RFC 8941: repeated
 * keys, parameters, empty or non-canonical bytes, over 4 members or 4096 characters throw `field-invalid` or `field-limit`.
 */
export function parseByteSequenceDictionary(
  fieldValue: string,
  fieldName = "the field",
): ReadonlyMap<string, Buffer> {
  const scanner = new FieldScanner(fieldValue, fieldName);
  return scanner.readDictionary(() => {
    const bytes = scanner.readByteSequence();
    if (bytes.length === 0) throw scanner.invalid("has an empty byte sequence");
    if (scanner.readParameters().size > 0) throw scanner.invalid("has parameters on a byte sequence");
    return bytes;
  });
}

/** A name and its parameters (RFC 9421 section 2). */
export interface ComponentIdentifier {
  readonly name: string;
  readonly parameters: Parameters;
}

export interface SignatureInput {
  readonly components: readonly ComponentIdentifier[];
  readonly parameters: Parameters;
}

/** Reads a Signature-Input field (RFC 9421 section 4.1). Throws a MessageSignatureError (`field-invalid`, `field-limit`). */
export function parseSignatureInput(
  fieldValue: string,
  fieldName = "Signature-Input",
): ReadonlyMap<string, SignatureInput> {
  const scanner = new FieldScanner(fieldValue, fieldName);
  return scanner.readDictionary(() => {
    const components = scanner.readInnerList(maxComponents, () => ({
      name: scanner.readString(),
      parameters: scanner.readParameters(),
    }));
    return { components, parameters: scanner.readParameters() };
  });
}

const noParameters: Parameters = new Map();

/** A component identifier as it stands in the signature base (RFC 9421 section 2.5). */
export function serializeComponentIdentifier({ name, parameters }: ComponentIdentifier): string {
  return parameters.size === 0
    ? serializeString(name)
    : serializeString(name) + serializeParameters(parameters);
}

/** Components as options and signatures name them. */
export const componentIdentifiers = {
  parse: parseComponentIdentifier,
  textOf: componentText,
  assertComputable,
};

/** Writes a component as options do: its bare name, or with parameters the serialisation, `"content-digest";req`. */
export function componentText(component: ComponentIdentifier): string {
  return component.parameters.size === 0 ? component.name : serializeComponentIdentifier(component);
}

/** Reads what {@link componentText} writes, such as `"@query-param";name="id"`. Throws a TypeError. Looks at no message. */
export function parseComponentIdentifier(text: string): ComponentIdentifier {
  if (typeof text === "string" && bareName.test(text)) return { name: text, parameters: noParameters };
  try {
    const scanner = new FieldScanner(text, "the component");
    return scanner.readWhole(() => ({ name: scanner.readString(), parameters: scanner.readParameters() }));
  } catch (error) {
    if (!(error instanceof MessageSignatureError)) throw error;
    throw new TypeError('a component must be a bare name, or serialised like "content-digest";req', {
      cause: error,
    });
  }
}

const bareName = /^@?[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** One text for all equal identifiers: parameters count in any order (RFC 9421 section 2). Without parameters it is the name. */
export function identityOf({ name, parameters }: ComponentIdentifier): string {
  if (parameters.size === 0) return name;
  const sorted = [...parameters];
  sorted.sort(([one], [other]) => (one < other ? -1 : 1));
  return serializeString(name) + serializeParameters(new Map(sorted));
}

/** The identity of a component that an option names. Throws a TypeError. */
export function identityOfText(text: string): string {
  // Runs for each required component of each request.
  return typeof text === "string" && !text.startsWith('"')
    ? text
    : identityOf(parseComponentIdentifier(text));
}

const derivedNames: ReadonlySet<string> = new Set([...derivedComponents, "@query-param"]);
const fieldName = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;

/** The parameters of field components (RFC 9421 section 2.1), and those of `@query-param`; other derived ones have `req` alone. */
const fieldParameters: ReadonlySet<string> = new Set(["sf", "key", "bs", "tr", "req"]);
const queryParamParameters: ReadonlySet<string> = new Set(["name", "req"]);
const derivedParameters: ReadonlySet<string> = new Set(["req"]);

/**
 * Refuses components that the message, by default a request, cannot have or that could be read twice: empty, repeated, unknown derived, not
 * lower-case, with an unknown or unfit parameter. Returns their identities. Throws a MessageSignatureError.
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
  // Section 2.4: only of a response whose request is known.
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
 * Builds the signature base of a message (RFC 9421 section 2.5), ASCII, by one canonical serialiser: different inputs never give one base.
 * Throws a MessageSignatureError when a component is unknown, repeated, absent or not computable.
 */
export function createSignatureBase(
  message: Message,
  input: SignatureInput,
  fieldTypes?: FieldTypes,
): string {
  assertComputable(input.components, message, fieldTypes);
  assertSerializable(input.parameters);
  return buildSignatureBase(new MessageValues(message, undefined, fieldTypes), input);
}

/** {@link createSignatureBase} of a message's values, for components that passed assertComputable. */
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
