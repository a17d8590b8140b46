import {
  parseByteSequenceDictionary,
  parseSignatureInput,
  type BareItem,
  type Parameters,
  type SignatureInput,
} from "./field-scanner.ts";
import {
  assertComputable,
  collectFieldLines,
  combinedFieldValue,
  ComponentValues,
  type FieldLines,
  type RequestMessage,
} from "./components.ts";
import { ed25519SignatureLength } from "./algorithms/ed25519.ts";
import { maxKeyidLength, maxNonceLength } from "./limits.ts";
import { MessageSignatureError, type MessageSignatureErrorCode } from "./message-signature-error.ts";

/** What a signature must be like to be taken. */
export interface SignatureProfile {
  /** Component names that the signature has to cover. More, and in any order, is welcome. */
  readonly requiredComponents: readonly string[];
  /** The values of `alg` that are taken; the parameter is mandatory. */
  readonly algorithms: readonly "ed25519"[];
  /** Largest `expires - created`, in seconds. */
  readonly windowSeconds: number;
  /** How far `created` may lie ahead of the clock, in seconds. */
  readonly clockSkewSeconds: number;
  /** Which values of `tag` are taken. Default any, and none at all. */
  readonly tag?: TagPolicy | undefined;
}

/** What `tag`, the signer's name for its application or protocol (RFC 9421 section 2.3), has to be. Values are compared exactly. */
export interface TagPolicy {
  /** The signature has one of these tags. */
  readonly require?: readonly string[] | undefined;
  /** The signature has none of these tags; one without a tag is taken. */
  readonly exclude?: readonly string[] | undefined;
}

/** The one signature of a request that fits a profile. Nothing of it is verified yet. */
export interface ReceivedSignature {
  readonly label: string;
  readonly keyid: string;
  readonly alg: "ed25519";
  /** Unix seconds. */
  readonly created: number;
  /** Unix seconds. */
  readonly expires: number;
  readonly nonce: string;
  /** Undefined when the signature has none. */
  readonly tag?: string | undefined;
  /** Names of the covered components in their order. */
  readonly coveredComponents: readonly string[];
  readonly input: SignatureInput;
  readonly signature: Uint8Array;
  readonly values: ComponentValues;
}

/**
 * Reads Signature-Input and Signature and picks the one signature that fits the profile; labels carry no meaning
 * (RFC 9421 section 1.1). Costs no cryptography. Throws a MessageSignatureError when none fits or more than one does.
 */
export function readSignature(message: RequestMessage, profile: SignatureProfile): ReceivedSignature {
  const fields = collectFieldLines(message.rawHeaders);
  const { label, input, signature, parameters } = pickSignature(fields, profile);
  if (signature.length !== ed25519SignatureLength) {
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
    coveredComponents: input.components.map(({ name }) => name),
    input,
    signature,
    values: new ComponentValues(message, fields),
  };
}

/**
 * Checks `created` and `expires` against `now`, in Unix seconds with fractions (spec and RFC 9421 section 3.2.1). Both limits
 * are inclusive. Throws a MessageSignatureError: `window-too-long`, `created-in-future`, `signature-expired`.
 */
export function assertTimely(
  { created, expires }: Pick<ReceivedSignature, "created" | "expires">,
  { windowSeconds, clockSkewSeconds }: Pick<SignatureProfile, "windowSeconds" | "clockSkewSeconds">,
  now: number,
): void {
  // All three negated, so that a missing option or a clock that gives NaN refuses.
  if (!(expires - created <= windowSeconds)) {
    throw new MessageSignatureError(
      "window-too-long",
      `the signature is valid for more than ${windowSeconds} seconds`,
    );
  }
  if (!(created <= now + clockSkewSeconds)) {
    throw new MessageSignatureError("created-in-future", "created lies in the future");
  }
  if (!(now <= expires)) throw new MessageSignatureError("signature-expired", "the signature has expired");
}

type SignatureParameters = Pick<ReceivedSignature, "keyid" | "alg" | "created" | "expires" | "nonce" | "tag">;

interface FittingSignature {
  readonly label: string;
  readonly input: SignatureInput;
  readonly signature: Uint8Array;
  readonly parameters: SignatureParameters;
}

function pickSignature(fields: FieldLines, profile: SignatureProfile): FittingSignature {
  const { inputs, signatures } = parseSignatureFields(fields);
  let fitting: FittingSignature | undefined;
  let misfit: MessageSignatureError | undefined;
  for (const [label, input] of inputs) {
    const signature = signatures.get(label);
    if (signature === undefined) continue;
    try {
      const parameters = readSignatureParameters(input, profile);
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
    new MessageSignatureError("signature-missing", "no label stands in both Signature-Input and Signature")
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

function readSignatureParameters(
  { components, parameters }: SignatureInput,
  profile: SignatureProfile,
): SignatureParameters {
  assertComputable(components);
  for (const required of profile.requiredComponents) {
    if (!components.some(({ name }) => name === required)) {
      throw new MessageSignatureError("component-required", `the signature does not cover ${required}`);
    }
  }
  const received = readString(parameters, "alg", "alg-invalid", 64);
  const alg = profile.algorithms.find((allowed) => allowed === received);
  if (alg === undefined)
    throw new MessageSignatureError("alg-mismatch", "alg is not one of the algorithms taken");
  const keyid = readString(parameters, "keyid", "keyid-invalid", maxKeyidLength);
  const created = readUnixSeconds(parameters, "created", "created-invalid");
  const expires = readUnixSeconds(parameters, "expires", "expires-invalid");
  if (expires <= created)
    throw new MessageSignatureError("expires-invalid", "expires is not later than created");
  const nonce = readString(parameters, "nonce", "nonce-invalid", maxNonceLength);
  return { keyid, alg, created, expires, nonce, tag: readTag(parameters, profile.tag) };
}

function readTag(parameters: Parameters, policy: TagPolicy | undefined): string | undefined {
  const item = parameters.get("tag");
  if (item !== undefined && item.type !== "string") {
    throw new MessageSignatureError("tag-invalid", "tag must be a string");
  }
  const tag = item?.value;
  const { require: required, exclude: excluded } = policy ?? {};
  // some(), not includes(): of one string in place of a list a part would do.
  const isRequired = required === undefined || required.some((value) => value === tag);
  const isExcluded = excluded?.some((value) => value === tag) ?? false;
  if (!isRequired || isExcluded) {
    throw new MessageSignatureError("tag-mismatch", "tag is not one of the values taken");
  }
  return tag;
}

function readString(
  parameters: Parameters,
  name: string,
  code: MessageSignatureErrorCode,
  maxLength: number,
): string {
  const item: BareItem | undefined = parameters.get(name);
  if (item?.type !== "string" || item.value === "" || item.value.length > maxLength) {
    throw new MessageSignatureError(code, `${name} must be a string of 1 to ${maxLength} characters`);
  }
  return item.value;
}

function readUnixSeconds(parameters: Parameters, name: string, code: MessageSignatureErrorCode): number {
  const item: BareItem | undefined = parameters.get(name);
  if (item?.type !== "integer" || item.value < 0) {
    throw new MessageSignatureError(code, `${name} must be an integer of Unix seconds`);
  }
  return item.value;
}
