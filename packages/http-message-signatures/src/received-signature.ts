import type { SignatureAlgorithm } from "./algorithms/algorithm.ts";
import { ed25519SignatureLength } from "./algorithms/ed25519.ts";
import { componentText } from "./component-identifier.ts";
import { messageValues, type MessageValues } from "./components.ts";
import { collectFieldLines, combinedFieldValue, type FieldLines, type Message } from "./message.ts";
import { MessageSignatureError } from "./message-signature-error.ts";
import { parseByteSequenceDictionary, parseSignatureInput, type SignatureInput } from "./signature-fields.ts";
import { readSignatureParameters, type SignatureParameters } from "./signature-parameters.ts";
import type { SignatureProfile } from "./signature-profile.ts";

/** The one signature of a message that fits a profile. Nothing of it is verified yet. */
export interface ReceivedSignature extends SignatureParameters {
  readonly label: string;
  /** The algorithms that the profile takes: where there is no `alg`, that of the key has to be one of them. */
  readonly algorithms: readonly SignatureAlgorithm[];
  /** The covered components in their order: bare names, or full identifiers such as `"content-digest";req`. */
  readonly coveredComponents: readonly string[];
  readonly input: SignatureInput;
  readonly signature: Uint8Array;
  readonly values: MessageValues;
}

/**
 * Reads Signature-Input and Signature and picks the one signature that fits the profile; labels carry no meaning
 * (RFC 9421 section 1.1). Costs no cryptography. Throws a MessageSignatureError when none fits or more than one does.
 */
export function readSignature(message: Message, profile: SignatureProfile): ReceivedSignature {
  const fields = collectFieldLines(message.rawHeaders);
  const { label, input, signature, parameters } = pickSignature(fields, profile, message);
  if (parameters.alg === "ed25519" && signature.length !== ed25519SignatureLength) {
    throw new MessageSignatureError(
      "signature-malformed",
      `the signature is not ${ed25519SignatureLength} bytes long`,
    );
  }
  // Member by member: spreading costs more than parsing does.
  return {
    label,
    keyid: parameters.keyid,
    alg: parameters.alg,
    created: parameters.created,
    expires: parameters.expires,
    nonce: parameters.nonce,
    tag: parameters.tag,
    algorithms: profile.algorithms,
    coveredComponents: input.components.map(componentText),
    input,
    signature,
    values: messageValues(message, fields, profile.fieldTypes),
  };
}

interface FittingSignature {
  readonly label: string;
  readonly input: SignatureInput;
  readonly signature: Uint8Array;
  readonly parameters: SignatureParameters;
}

function pickSignature(fields: FieldLines, profile: SignatureProfile, message: Message): FittingSignature {
  const { inputs, signatures } = parseSignatureFields(fields);
  let fitting: FittingSignature | undefined;
  let misfit: MessageSignatureError | undefined;
  for (const [label, input] of inputs) {
    const signature = signatures.get(label);
    if (signature === undefined || (profile.label !== undefined && label !== profile.label)) continue;
    try {
      const parameters = readSignatureParameters(input, profile, message);
      if (fitting !== undefined) {
        throw new MessageSignatureError("signature-ambiguous", "more than one signature fits the profile");
      }
      fitting = { label, input, signature, parameters };
    } catch (error) {
      if (!(error instanceof MessageSignatureError) || error.code === "signature-ambiguous") throw error;
      misfit ??= error;
    }
  }
  if (fitting !== undefined) return fitting;
  throw (
    misfit ??
    new MessageSignatureError(
      "signature-missing",
      "no label that is looked at stands in both Signature-Input and Signature",
    )
  );
}

function parseSignatureFields(fields: FieldLines): {
  inputs: ReadonlyMap<string, SignatureInput>;
  signatures: ReadonlyMap<string, Buffer>;
} {
  const inputField = combinedFieldValue(fields.get("signature-input"));
  const signatureField = combinedFieldValue(fields.get("signature"));
  if (inputField === undefined || signatureField === undefined) {
    throw new MessageSignatureError("signature-missing", "Signature-Input or Signature is missing");
  }
  return {
    inputs: parseSignatureInput(inputField),
    signatures: parseByteSequenceDictionary(signatureField, "Signature"),
  };
}
