import type { BareItem, Parameters } from "./field-scanner.ts";
import { maxNonceLength } from "./limits.ts";
import { MessageSignatureError } from "./message-signature-error.ts";
import type { Message, RequestMessage, ResponseMessage } from "./message.ts";
import { signAsync, type SignatureFields, type SignatureOptions } from "./sign.ts";
import {
  assertComputable,
  parseComponentIdentifier,
  parseSignatureInput,
  serializeComponentIdentifier,
  serializeSignatureParams,
  type SignatureInput,
} from "./signature-base.ts";
import {
  defaultParameters,
  isSignatureParameter,
  type SignatureParameter,
  type SignatureProfile,
} from "./signature-parameters.ts";
import type { Signer } from "./signer.ts";
import { assertSerializable } from "./structured-field.ts";

const flag: BareItem = { type: "boolean", value: true };

/**
 * Reads Accept-Signature (RFC 9421 section 5.1), by label. `created` and `expires` have no value. Throws a MessageSignatureError.
 */
export function parseAcceptSignature(fieldValue: string): ReadonlyMap<string, SignatureInput> {
  const requests = parseSignatureInput(fieldValue, "Accept-Signature");
  for (const { parameters } of requests.values()) {
    for (const [name, item] of parameters) {
      if (isSignatureParameter(name) && !isRequested(name, item)) {
        throw new MessageSignatureError("field-invalid", `Accept-Signature has a ${name} of another type`);
      }
    }
  }
  return requests;
}

function isRequested(name: SignatureParameter, item: BareItem): boolean {
  if (name === "created" || name === "expires") return item.type === "boolean" && item.value;
  return item.type === "string" && item.value !== "";
}

export interface AcceptSignatureOptions {
  /** What shall be signed: the answer to this message, or the next request. */
  readonly of: "request" | "response";
  /** Default `sig1`. */
  readonly label?: string | undefined;
  /** The nonce that the signature shall have. Default none is asked for. */
  readonly nonce?: string | undefined;
  /** The key that shall sign. Default any. */
  readonly keyid?: string | undefined;
}

/** Writes Accept-Signature for a profile: its components, `created`, `expires`, a sole algorithm or tag. Throws a MessageSignatureError. */
export function createAcceptSignature(profile: SignatureProfile, options: AcceptSignatureOptions): string {
  const { label = profile.label ?? "sig1", nonce, keyid } = options;
  const components = profile.requiredComponents.map(parseComponentIdentifier);
  assertComputable(components, samples[options.of], profile.fieldTypes);
  const { requiredParameters = defaultParameters, algorithms, tag } = profile;
  const values: Readonly<Record<SignatureParameter, BareItem | undefined>> = {
    created: flag,
    expires: flag,
    keyid: asString(keyid),
    alg: asString(algorithms.length === 1 ? algorithms[0] : undefined),
    nonce: asString(nonce),
    tag: asString(tag?.require?.length === 1 ? tag.require[0] : undefined),
  };
  const parameters = new Map<string, BareItem>();
  for (const name of [...requiredParameters, "keyid", "nonce", "tag"] as const) {
    const value = values[name];
    if (value !== undefined) parameters.set(name, value);
  }
  assertSerializable(parameters);
  return `${label}=${serializeSignatureParams(components, parameters)}`;
}

const request: RequestMessage = { method: "GET", target: "/", rawHeaders: [], rawTrailers: [] };
const response: ResponseMessage = { status: 200, rawHeaders: [], rawTrailers: [], request };
const samples = { request, response };

function asString(value: string | undefined): BareItem | undefined {
  return value === undefined ? undefined : { type: "string", value };
}

export interface AnswerOptions extends Pick<SignatureOptions, "created" | "expires" | "fieldTypes"> {
  readonly signer: Signer;
  /** The tags under which this key signs when asked. Default none: a request for a tag is refused. */
  readonly tags?: readonly string[] | undefined;
}

/**
 * Signs as a member of Accept-Signature asks (RFC 9421 section 5.2), or rejects with a MessageSignatureError: `signature-request-refused`
 * for another key or algorithm, a tag outside `tags`, a nonce too long or an unknown parameter; and the codes of absent components.
 */
export async function answerAcceptSignature(
  message: Message,
  [label, { components, parameters }]: readonly [label: string, request: SignatureInput],
  { signer, tags = [], created, expires, fieldTypes }: AnswerOptions,
): Promise<SignatureFields> {
  const names = [...parameters.keys()].filter(isSignatureParameter);
  if (names.length !== parameters.size) throw refused("asks for a parameter that is not known");
  const tag = textOf(parameters, "tag");
  if (tag !== undefined && !tags.includes(tag)) throw refused("asks for a tag that is not taken");
  if ((textOf(parameters, "keyid") ?? signer.keyid) !== signer.keyid) throw refused("asks for another key");
  if ((textOf(parameters, "alg") ?? signer.alg) !== signer.alg) throw refused("asks for another algorithm");
  const nonce = textOf(parameters, "nonce");
  // A signer would throw a TypeError: the caller's mistake, not the peer's.
  if ((nonce?.length ?? 0) > maxNonceLength)
    throw refused(`asks for a nonce over ${maxNonceLength} characters`);
  return signAsync(message, {
    signer,
    label,
    components: components.map(serializeComponentIdentifier),
    parameters: names,
    created: names.includes("created") || names.includes("expires") ? created : undefined,
    expires: names.includes("expires") ? expires : undefined,
    nonce,
    tag,
    fieldTypes,
  });
}

function textOf(parameters: Parameters, name: SignatureParameter): string | undefined {
  const item = parameters.get(name);
  return item?.type === "string" ? item.value : undefined;
}

function refused(what: string): MessageSignatureError {
  return new MessageSignatureError("signature-request-refused", `Accept-Signature ${what}`);
}
