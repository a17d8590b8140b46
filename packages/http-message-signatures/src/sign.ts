import { createPrivateKey, type KeyObject, randomUUID } from "node:crypto";
import { algorithms } from "./algorithms/registry.ts";
import { parseComponentIdentifier } from "./component-identifier.ts";
import type { BareItem } from "./field-scanner.ts";
import { maxKeyidLength, maxNonceLength, maxTagLength } from "./limits.ts";
import type { RequestMessage } from "./message.ts";
import { createSignatureBase, serializeSignatureParams } from "./signature-base.ts";

/** Options of {@link sign}. */
export interface SignOptions {
  /** An Ed25519 private key: a KeyObject, or PKCS#8 PEM. */
  readonly key: KeyObject | string;
  readonly keyid: string;
  /** Default `@method`, `@path`, `content-type`, `content-digest`. */
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
}

/** Values of the two header fields, and what was signed. */
export interface SignatureFields {
  readonly signatureInput: string;
  readonly signature: string;
  readonly signatureBase: string;
}

/** Covered components of a payout instruction, in their order. */
export const defaultComponents: readonly string[] = ["@method", "@path", "content-type", "content-digest"];

const labelPattern = /^[a-z*][a-z0-9_\-.*]*$/;

/**
 * Signs a request with Ed25519 (RFC 9421 section 3.1). Throws a TypeError on a bad option, a MessageSignatureError when a
 * component cannot be computed.
 */
export function sign(message: RequestMessage, options: SignOptions): SignatureFields {
  const { label = "sig1", components = defaultComponents } = options;
  const { created = Math.floor(Date.now() / 1000), nonce = randomUUID() } = options;
  const { expires = created + 60 } = options;
  if (!labelPattern.test(label))
    throw new TypeError("sign: option label must be a lower-case dictionary key");
  const parameters = new Map<string, BareItem>([
    ["created", integer("created", created)],
    ["expires", integer("expires", expires)],
    ["keyid", string("keyid", options.keyid, maxKeyidLength)],
    ["alg", { type: "string", value: "ed25519" }],
    ["nonce", string("nonce", nonce, maxNonceLength)],
  ]);
  if (options.tag !== undefined) parameters.set("tag", string("tag", options.tag, maxTagLength));
  const input = { components: components.map(parseComponentIdentifier), parameters };
  const signatureBase = createSignatureBase(message, input);
  const signature = algorithms.ed25519.sign(privateKey(options.key), Buffer.from(signatureBase, "latin1"));
  return {
    signatureInput: `${label}=${serializeSignatureParams(input.components, parameters)}`,
    signature: `${label}=:${Buffer.from(signature).toString("base64")}:`,
    signatureBase,
  };
}

function privateKey(key: KeyObject | string): KeyObject {
  let object: KeyObject;
  try {
    object = typeof key === "string" ? createPrivateKey(key) : key;
  } catch {
    throw new TypeError("sign: option key must be a PKCS#8 PEM or a private KeyObject");
  }
  if (object.type !== "private" || object.asymmetricKeyType !== "ed25519") {
    throw new TypeError("sign: option key must be an Ed25519 private key");
  }
  return object;
}

function integer(name: string, value: number): BareItem {
  if (!Number.isInteger(value) || Math.abs(value) > 999_999_999_999_999) {
    throw new TypeError(`sign: option ${name} must be an integer of Unix seconds with at most 15 digits`);
  }
  return { type: "integer", value };
}

function string(name: string, value: string, maxLength: number): BareItem {
  if (typeof value !== "string" || !/^[\x20-\x7e]+$/.test(value) || value.length > maxLength) {
    throw new TypeError(`sign: option ${name} must be 1 to ${maxLength} printable ASCII characters`);
  }
  return { type: "string", value };
}
