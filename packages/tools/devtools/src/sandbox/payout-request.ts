import { randomUUID, type KeyObject } from "node:crypto";
import { validateHeaderName, validateHeaderValue } from "node:http";
import { createContentDigest } from "@countersign/content-digest";
import { assertKnownOptions } from "@countersign/core/internal";
import { sign } from "@countersign/http-message-signatures";
import { forwardedFields } from "./forwarded-fields.ts";
import { importPrivateKey } from "./key-pair.ts";
import type { OutgoingRequest } from "./send-request.ts";
import { assertTarget, parsePayoutUrl } from "./payout-url.ts";
import { sentBodyOf, signedTargetOf, tamperedParts, tamperSignature, type TamperedPart } from "./tamper.ts";

/** Give either `body` or `bodyText`. */
export interface PayoutRequestOptions {
  /** Its path and query are signed, and sent, exactly as given. */
  readonly url: string;
  /** Any value for JSON.stringify. */
  readonly body?: unknown;
  /** Sent byte for byte. */
  readonly bodyText?: string | Uint8Array | undefined;
  /** Ed25519 private key, as PKCS#8 PEM or KeyObject. A KeyObject saves the parsing. */
  readonly privateKey: KeyObject | string;
  readonly keyid: string;
  /** Unix seconds. Default now. */
  readonly created?: number | undefined;
  /** Unix seconds. Default `created` + 60. */
  readonly expires?: number | undefined;
  /** Default a random UUID: a new one for every attempt. */
  readonly nonce?: string | undefined;
  /** Covered components in order. Default `@method`, `@path`, `content-type`, `content-digest`. */
  readonly components?: readonly string[] | undefined;
  /** Default `sig1`. */
  readonly label?: string | undefined;
  /** Further header fields; `Content-Type`, `Content-Digest` and `Host` replace the computed ones before signing. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * Sends the request as a proxy that ends TLS hands it on: with this IP address in X-Forwarded-For, and X-Forwarded-Proto: https. `headers`
   * can replace both. Default none.
   */
  readonly forwardedFor?: string | undefined;
  /** The request target on the wire, when it is to differ from the signed one of `url`. */
  readonly target?: string | undefined;
  /** Spoils one part of the signed request. Default none. */
  readonly tamper?: TamperedPart | undefined;
}

export interface PayoutRequest extends OutgoingRequest {
  readonly method: "POST";
  /** What was signed; the nonce is spent once the platform has accepted it. */
  readonly signature: {
    readonly keyid: string;
    readonly created: number;
    readonly expires: number;
    readonly nonce: string;
    /** RFC 9421 section 2.5. */
    readonly signatureBase: string;
  };
}

const factoryName = "buildPayoutRequest";
const knownOptions: readonly (keyof PayoutRequestOptions)[] = [
  ...(["url", "body", "bodyText", "privateKey", "keyid", "created", "expires", "nonce"] as const),
  ...(["components", "label", "headers", "forwardedFor", "target", "tamper"] as const),
];
const computedHeaders = /^(?:signature|signature-input|content-length|transfer-encoding|connection)$/i;

/** Builds and signs a payout; `created` and `nonce` make it repeatable. Throws a TypeError, or a MessageSignatureError. */
export function buildPayoutRequest(options: PayoutRequestOptions): PayoutRequest {
  assertOptions(options);
  const { tamper } = options;
  const { scheme, authority, target: urlTarget } = parsePayoutUrl(options.url);
  const target = options.target ?? urlTarget;
  assertTarget(target);
  const body = bodyOf(options);
  const fields = headerFields(options, body);

  const created = options.created ?? Math.floor(Date.now() / 1000);
  const unit = tamper === "created-milliseconds" ? 1000 : 1;
  const metadata = {
    keyid: options.keyid,
    created: created * unit,
    expires: (options.expires ?? created + 60) * unit,
    nonce: options.nonce ?? randomUUID(),
  };
  const { signatureInput, signature, signatureBase } = sign(
    {
      method: "POST",
      target: signedTargetOf(urlTarget, tamper),
      rawHeaders: [...fields].flat(),
      scheme,
      authority: valueOf(fields, "host") ?? authority,
    },
    {
      ...metadata,
      key: importPrivateKey(options.privateKey),
      components: options.components,
      label: options.label,
    },
  );
  fields.set("Signature-Input", signatureInput);
  fields.set("Signature", tamper === "signature" ? tamperSignature(signature) : signature);

  const bodyBytes = sentBodyOf(body, tamper);
  if (tamper === "digest") setField(fields, "Content-Digest", createContentDigest(bodyBytes));
  if (tamper === "charset-added")
    setField(fields, "Content-Type", `${valueOf(fields, "content-type")}; charset=utf-8`);
  return {
    method: "POST",
    url: options.url,
    target,
    headers: Object.fromEntries(fields),
    bodyBytes,
    signature: { ...metadata, signatureBase },
  };
}

function assertOptions(options: PayoutRequestOptions): void {
  assertKnownOptions(factoryName, options, knownOptions);
  if ((options.body === undefined) === (options.bodyText === undefined)) {
    throw new TypeError(`${factoryName}: give either option body or option bodyText`);
  }
  if (options.tamper !== undefined && !tamperedParts.includes(options.tamper)) {
    throw new TypeError(`${factoryName}: option tamper must be one of ${tamperedParts.join(", ")}`);
  }
}

function bodyOf({ body, bodyText }: PayoutRequestOptions): Buffer {
  if (bodyText === undefined) return Buffer.from(JSON.stringify(body), "utf8");
  return typeof bodyText === "string" ? Buffer.from(bodyText, "utf8") : Buffer.from(bodyText);
}

function headerFields(
  { headers: given = {}, forwardedFor }: PayoutRequestOptions,
  body: Buffer,
): Map<string, string> {
  const fields = new Map([
    ...Object.entries(forwardedFields(forwardedFor)),
    ["Content-Type", "application/json"],
    ["Content-Digest", createContentDigest(body)],
  ]);
  for (const [name, value] of Object.entries(given)) {
    validateHeaderName(name);
    validateHeaderValue(name, value);
    if (computedHeaders.test(name))
      throw new TypeError(`the header field ${name} is computed and cannot be given`);
    setField(fields, name, value);
  }
  return fields;
}

// Header names are case-insensitive: a second spelling replaces the first instead of being sent beside it.
function setField(fields: Map<string, string>, name: string, value: string): void {
  fields.set(spellingOf(fields, name) ?? name, value);
}

function valueOf(fields: Map<string, string>, name: string): string | undefined {
  return fields.get(spellingOf(fields, name) ?? name);
}

function spellingOf(fields: Map<string, string>, name: string): string | undefined {
  return [...fields.keys()].find((known) => known.toLowerCase() === name.toLowerCase());
}
