import { FieldScanner, type Parameters } from "./field-scanner.ts";
import { maxComponents } from "./limits.ts";
import { MessageSignatureError } from "./message-signature-error.ts";
import { serializeParameters, serializeString } from "./structured-field.ts";

/**
 * Reads a dictionary whose members are byte sequences: Signature (RFC 9421 section 4.2), Content-Digest (RFC 9530 section 2).
 * Stricter than RFC 8941: repeated keys, parameters, empty or non-canonical bytes, more than 4 members or 4096 characters
 * throw a MessageSignatureError (`field-invalid`, `field-limit`).
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

/** A component identifier: a name and its parameters (RFC 9421 section 2). */
export interface ComponentIdentifier {
  readonly name: string;
  readonly parameters: Parameters;
}

/** What one label of Signature-Input says: the covered components in order, and the signature parameters. */
export interface SignatureInput {
  readonly components: readonly ComponentIdentifier[];
  readonly parameters: Parameters;
}

/** Reads a Signature-Input field (RFC 9421 section 4.1). Throws a MessageSignatureError (`field-invalid`, `field-limit`). */
export function parseSignatureInput(fieldValue: string): ReadonlyMap<string, SignatureInput> {
  return parseInputs(fieldValue, "Signature-Input");
}

/** Reads an Accept-Signature field, whose members have the form of those of Signature-Input (RFC 9421 section 5.1). */
export function parseAcceptSignatureMembers(fieldValue: string): ReadonlyMap<string, SignatureInput> {
  return parseInputs(fieldValue, "Accept-Signature");
}

function parseInputs(fieldValue: string, name: string): ReadonlyMap<string, SignatureInput> {
  const scanner = new FieldScanner(fieldValue, name);
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

/** As options write it: the bare name where there are no parameters, else the serialisation, `"content-digest";req`. */
export function componentText(component: ComponentIdentifier): string {
  return component.parameters.size === 0 ? component.name : serializeComponentIdentifier(component);
}

/**
 * Reads what {@link componentText} writes: `content-digest`, `"content-digest";req`, `"@query-param";name="id"`. Throws a
 * TypeError. Whether a message can have it is not looked at.
 */
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

/**
 * One text for all identifiers that are equal: parameters count in any order (RFC 9421 section 2). That of an identifier without
 * parameters is its name.
 */
export function identityOf({ name, parameters }: ComponentIdentifier): string {
  if (parameters.size === 0) return name;
  const sorted = [...parameters];
  sorted.sort(([one], [other]) => (one < other ? -1 : 1));
  return serializeString(name) + serializeParameters(new Map(sorted));
}

/** The identity of a component that an option names. Throws a TypeError. */
export function identityOfText(text: string): string {
  // A name stands for itself: this is asked for each required component of each request.
  return typeof text === "string" && !text.startsWith('"')
    ? text
    : identityOf(parseComponentIdentifier(text));
}
