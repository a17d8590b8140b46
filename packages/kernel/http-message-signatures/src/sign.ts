import type { SignatureAlgorithm } from "./algorithms/algorithm.ts";
import type { SigningKeyInput } from "./algorithms/signing-key.ts";
import type { FieldTypes } from "./field-types.ts";
import { collectFieldLines, combinedFieldValue, type Message } from "./message.ts";
import { createSignatureBase, serializeSignatureParams } from "./signature-base.ts";
import { parseByteSequenceDictionary, parseSignatureInput } from "./signature-fields.ts";
import { planSignature, type SignatureOptions, type SignaturePlan } from "./signature-plan.ts";
import { createSigner, type Signer } from "./signer.ts";

/** Options of {@link sign}. */
export interface SignOptions extends SignatureOptions {
  /** A private key, or for `hmac-sha256` the secret. */
  readonly key: SigningKeyInput;
  /** Default the key's own. RSA needs it, unless a JWK or a key of type rsa-pss says it, and so does a secret. */
  readonly alg?: SignatureAlgorithm | undefined;
  readonly keyid: string;
}

/** Options of {@link signAsync}. */
export interface SignAsyncOptions extends SignatureOptions {
  readonly signer: Signer;
}

/** Values of the two header fields, and what was signed. */
export interface SignatureFields {
  readonly signatureInput: string;
  readonly signature: string;
  readonly signatureBase: string;
}

/**
 * Signs a request or a response (RFC 9421 section 3.1). Throws a TypeError on a bad option, a MessageSignatureError when a
 * component cannot be computed.
 */
export function sign(message: Message, options: SignOptions): SignatureFields {
  const signer = createSigner(options.key, options.keyid, options.alg);
  const plan = planSignature(message, options, signer);
  const signatureBase = createSignatureBase(message, plan.input, options.fieldTypes);
  return signatureFields(plan, signatureBase, signer.sign(baseBytes(signatureBase)));
}

/** As {@link sign}, by a signer that may take its time. Rejects with what the signer rejects with. */
export async function signAsync(
  message: Message,
  { signer, ...options }: SignAsyncOptions,
): Promise<SignatureFields> {
  return signPlan(message, planSignature(message, options, signer), {
    signer,
    fieldTypes: options.fieldTypes,
  });
}

/** Makes the signature of a plan. */
export async function signPlan(
  message: Message,
  plan: SignaturePlan,
  { signer, fieldTypes }: { readonly signer: Signer; readonly fieldTypes: FieldTypes | undefined },
): Promise<SignatureFields> {
  const signatureBase = createSignatureBase(message, plan.input, fieldTypes);
  return signatureFields(plan, signatureBase, await signer.sign(baseBytes(signatureBase)));
}

/**
 * The message with a signature more, behind those that it has. Throws a TypeError when it has one of this label already, and a
 * MessageSignatureError when what it has is not well-formed.
 */
export function withSignature<Signed extends Message>(message: Signed, fields: SignatureFields): Signed {
  const lines = collectFieldLines(message.rawHeaders);
  const [label = ""] = parseSignatureInput(fields.signatureInput).keys();
  const inputs = combinedFieldValue(lines.get("signature-input"));
  const signatures = combinedFieldValue(lines.get("signature"));
  if (
    (inputs !== undefined && parseSignatureInput(inputs).has(label)) ||
    (signatures !== undefined && parseByteSequenceDictionary(signatures, "Signature").has(label))
  ) {
    throw new TypeError(`withSignature: the message has a signature with the label ${label} already`);
  }
  const added = ["Signature-Input", fields.signatureInput, "Signature", fields.signature];
  return { ...message, rawHeaders: [...message.rawHeaders, ...added] };
}

// Everything in a base is ASCII.
function baseBytes(signatureBase: string): Uint8Array {
  return Buffer.from(signatureBase, "latin1");
}

function signatureFields(
  { label, input }: SignaturePlan,
  signatureBase: string,
  signature: Uint8Array,
): SignatureFields {
  if (!(signature instanceof Uint8Array) || signature.length === 0) {
    throw new TypeError("sign: the signer gave no bytes");
  }
  return {
    signatureInput: `${label}=${serializeSignatureParams(input.components, input.parameters)}`,
    signature: `${label}=:${Buffer.from(signature).toString("base64")}:`,
    signatureBase,
  };
}
