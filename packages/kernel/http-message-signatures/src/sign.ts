import { randomUUID } from "node:crypto";
import type { SignatureAlgorithm } from "./algorithms/algorithm.ts";
import { isSignatureAlgorithm, signatureAlgorithms } from "./algorithms/registry.ts";
import type { BareItem, Parameters } from "./field-scanner.ts";
import { maxKeyidLength, maxNonceLength, maxTagLength } from "./limits.ts";
import {
  collectFieldLines,
  combinedFieldValue,
  isResponse,
  type FieldTypes,
  type Message,
  type ResponseMessage,
} from "./message.ts";
import {
  createSignatureBase,
  parseByteSequenceDictionary,
  parseComponentIdentifier,
  parseSignatureInput,
  serializeSignatureParams,
  type SignatureInput,
} from "./signature-base.ts";
import { defaultParameters, isSignatureParameter, type SignatureParameter } from "./signature-parameters.ts";
import { createSigner, type Signer, type SigningKeyInput } from "./signer.ts";

export interface SignatureOptions {
  /** Bare names, or `"content-digest";req`. Default `@method`, `@path`, `content-type`, `content-digest`; required for a response. */
  readonly components?: readonly string[] | undefined;
  /** Default `sig1`. */
  readonly label?: string | undefined;
  /** Unix seconds; default now. */
  readonly created?: number | undefined;
  /** Unix seconds; default `created + 60`. */
  readonly expires?: number | undefined;
  /** Default a random UUID. */
  readonly nonce?: string | undefined;
  /** The name of the application or protocol (RFC 9421 section 2.3). Default none. */
  readonly tag?: string | undefined;
  /** Which parameters, in which order. Default `created`, `expires`, `keyid`, `alg`, `nonce`, and `tag` where it is given. */
  readonly parameters?: readonly SignatureParameter[] | undefined;
  /** Types of structured fields, for `;sf` and `;key`, beside those of the registry. */
  readonly fieldTypes?: FieldTypes | undefined;
}

export interface SignOptions extends SignatureOptions {
  /** A private key, or for `hmac-sha256` the secret. */
  readonly key: SigningKeyInput;
  /** Default the key's own. A secret needs it, and so does RSA, unless a JWK or a key of type rsa-pss says it. */
  readonly alg?: SignatureAlgorithm | undefined;
  readonly keyid: string;
}

export interface SignatureFields {
  readonly signatureInput: string;
  readonly signature: string;
  readonly signatureBase: string;
}

interface PreparedSignature {
  /** Everything in a base is ASCII. */
  readonly data: Uint8Array;
  readonly fieldsOf: (signature: Uint8Array) => SignatureFields;
}

/** Covered by a payout instruction, in this order. */
export const defaultComponents: readonly string[] = ["@method", "@path", "content-type", "content-digest"];

/** Signs a message (RFC 9421 section 3.1). Throws a TypeError on a bad option, a MessageSignatureError on an uncomputable component. */
export function sign(message: Message, options: SignOptions): SignatureFields {
  const signer = createSigner(options.key, options.keyid, options.alg);
  const { data, fieldsOf } = prepare(message, options, signer);
  return fieldsOf(signer.sign(data));
}

/** As {@link sign}, by a signer that may be asynchronous. Rejects with what the signer rejects with. */
export async function signAsync(
  message: Message,
  { signer, ...options }: SignatureOptions & { readonly signer: Signer },
): Promise<SignatureFields> {
  const { data, fieldsOf } = prepare(message, options, signer);
  return fieldsOf(await signer.sign(data));
}

function prepare(
  message: Message,
  options: SignatureOptions,
  signer: Pick<Signer, "alg" | "keyid">,
): PreparedSignature {
  const { label = "sig1", components = isResponse(message) ? undefined : defaultComponents } = options;
  if (!/^[a-z*][a-z0-9_\-.*]*$/.test(label))
    throw new TypeError("sign: option label must be a lower-case dictionary key");
  if (components === undefined) throw new TypeError("sign: option components is required for a response");
  const parameters = planParameters(options, signer);
  const input: SignatureInput = { components: components.map(parseComponentIdentifier), parameters };
  const signatureBase = createSignatureBase(message, input, options.fieldTypes);
  return {
    data: Buffer.from(signatureBase, "latin1"),
    fieldsOf(signature) {
      if (!(signature instanceof Uint8Array) || signature.length === 0) {
        throw new TypeError("sign: the signer gave no bytes");
      }
      return {
        signatureInput: `${label}=${serializeSignatureParams(input.components, parameters)}`,
        signature: `${label}=:${Buffer.from(signature).toString("base64")}:`,
        signatureBase,
      };
    },
  };
}

function planParameters(
  options: SignatureOptions,
  { alg, keyid }: Pick<Signer, "alg" | "keyid">,
): Parameters {
  const { created = Math.floor(Date.now() / 1000), nonce = randomUUID(), tag } = options;
  const { expires = created + 60 } = options;
  const make: Readonly<Record<SignatureParameter, () => BareItem>> = {
    created: () => integer("created", created),
    expires: () => integer("expires", expires),
    keyid: () => string("keyid", keyid, maxKeyidLength),
    alg: () => ({ type: "string", value: checkedAlgorithm(alg) }),
    nonce: () => string("nonce", nonce, maxNonceLength),
    tag: () => string("tag", tag, maxTagLength),
  };
  return new Map(parameterNames(options).map((name) => [name, make[name]()]));
}

// Nobody would notice that a given nonce, tag or time is not signed.
function parameterNames(options: SignatureOptions): readonly SignatureParameter[] {
  const { tag, parameters = tag === undefined ? defaultParameters : [...defaultParameters, "tag"] } = options;
  if (new Set(parameters).size !== parameters.length || !parameters.every(isSignatureParameter)) {
    const known = [...defaultParameters, "tag"].join(", ");
    throw new TypeError(`sign: option parameters must be a list of ${known}, each once`);
  }
  for (const name of ["created", "expires", "nonce", "tag"] as const) {
    if (options[name] !== undefined && !parameters.includes(name)) {
      const isBase = name === "created" && parameters.includes("expires");
      if (!isBase) throw new TypeError(`sign: option ${name} is given, but not in option parameters`);
    }
  }
  return parameters;
}

function checkedAlgorithm(alg: Signer["alg"]): string {
  if (isSignatureAlgorithm(alg)) return alg;
  throw new TypeError(`sign: the signer's alg must be ${signatureAlgorithms.join(" or ")}`);
}

function integer(name: string, value: number): BareItem {
  if (!Number.isInteger(value) || Math.abs(value) > 999_999_999_999_999) {
    throw new TypeError(`sign: option ${name} must be an integer of Unix seconds with at most 15 digits`);
  }
  return { type: "integer", value };
}

function string(name: string, value: string | undefined, maxLength: number): BareItem {
  if (typeof value !== "string" || !/^[\x20-\x7e]+$/.test(value) || value.length > maxLength) {
    throw new TypeError(`sign: option ${name} must be 1 to ${maxLength} printable ASCII characters`);
  }
  return { type: "string", value };
}

/** Adds a signature after those the message has. Throws a TypeError on a repeated label, a MessageSignatureError on malformed fields. */
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

// Covered where an answer has them: they say what the bytes are, or where the new resource is.
const describing = ["content-type", "content-encoding", "location"];

/** Binds an answer to one request (RFC 9421 section 2.4) by the signature with this label: its nonce makes each receipt unique. */
export function receiptComponents(
  { rawHeaders, request }: Pick<ResponseMessage, "rawHeaders" | "request">,
  requestLabel: string,
): readonly string[] {
  const lines = collectFieldLines(rawHeaders);
  // A request without a body has no digest, and its signature says so.
  const hasDigest = collectFieldLines(request?.rawHeaders ?? []).has("content-digest");
  return [
    "@status",
    ...describing.filter((name) => lines.has(name)),
    "content-digest",
    '"@method";req',
    '"@path";req',
    ...(hasDigest ? ['"content-digest";req'] : []),
    `"signature";req;key="${requestLabel}"`,
  ];
}
