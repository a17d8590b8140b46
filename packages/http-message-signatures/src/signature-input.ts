import { FieldScanner, type Parameters } from "./field-scanner.ts";
import { maxComponents } from "./limits.ts";
import type { ComponentIdentifier } from "./serialize.ts";

/** What one label of Signature-Input says: the covered components in order, and the signature parameters. */
export interface SignatureInput {
  readonly components: readonly ComponentIdentifier[];
  readonly parameters: Parameters;
}

/** Reads a Signature-Input field (RFC 9421 section 4.1). Throws a MessageSignatureError (`field-invalid`, `field-limit`). */
export function parseSignatureInput(fieldValue: string): ReadonlyMap<string, SignatureInput> {
  const scanner = new FieldScanner(fieldValue, "Signature-Input");
  return scanner.readDictionary(() => {
    const components = scanner.readInnerList(maxComponents, () => ({
      name: scanner.readString(),
      parameters: scanner.readParameters(),
    }));
    return { components, parameters: scanner.readParameters() };
  });
}
