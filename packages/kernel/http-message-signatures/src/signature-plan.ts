import { randomUUID } from "node:crypto";
import { isSignatureAlgorithm, signatureAlgorithms } from "./algorithms/registry.ts";
import type { BareItem, Parameters } from "./field-scanner.ts";
import type { FieldTypes } from "./field-types.ts";
import { maxKeyidLength, maxNonceLength, maxTagLength } from "./limits.ts";
import { isResponse, type Message } from "./message.ts";
import { parseComponentIdentifier, type SignatureInput } from "./signature-fields.ts";
import { defaultParameters, isSignatureParameter } from "./signature-parameters.ts";
import type { SignatureParameter } from "./signature-profile.ts";
import type { Signer } from "./signer.ts";

/** What a signature covers and says, whoever makes it. */
export interface SignatureOptions {
  /**
   * Bare names, or full identifiers such as `"content-digest";req`. Default `@method`, `@path`, `content-type`, `content-digest`;
   * required for a response.
   */
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

/** A signature before it is made. */
export interface SignaturePlan {
  readonly label: string;
  readonly input: SignatureInput;
}

/** Covered components of a payout instruction, in their order. */
export const defaultComponents: readonly string[] = ["@method", "@path", "content-type", "content-digest"];

const labelPattern = /^[a-z*][a-z0-9_\-.*]*$/;

/** Checks the options and fills in defaults. Throws a TypeError. */
export function planSignature(
  message: Message,
  options: SignatureOptions,
  signer: Pick<Signer, "alg" | "keyid">,
): SignaturePlan {
  const { label = "sig1", components = isResponse(message) ? undefined : defaultComponents } = options;
  if (!labelPattern.test(label))
    throw new TypeError("sign: option label must be a lower-case dictionary key");
  if (components === undefined) throw new TypeError("sign: option components is required for a response");
  const input = {
    components: components.map(parseComponentIdentifier),
    parameters: planParameters(options, signer),
  };
  return { label, input };
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
  const names = parameterNames(options);
  return new Map(names.map((name) => [name, make[name]()]));
}

// A nonce, tag or time that was given and not signed would be a mistake that nobody sees.
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
