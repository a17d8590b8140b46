import { FieldScanner, type Parameters } from "./field-scanner.ts";
import { maxComponents } from "./limits.ts";

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
