import { verifyContentDigest } from "@countersign/content-digest";
import { isGuardError } from "@countersign/core";
import { causedBy, fieldLines } from "@countersign/core/internal";
import {
  MessageSignatureError,
  parseSignatureInput,
  signatureAlgorithms,
  verify,
  type RequestMessage,
  type ResponseMessage,
  type SignatureProfile,
  type VerificationKey,
} from "@countersign/http-message-signatures";
import { receiptComponents } from "@countersign/http-message-signatures/internal";

/** An answer and its request, both as they were on the wire. */
export interface SignedExchange {
  /** As sent, with its Signature-Input and Signature lines. */
  readonly request: RequestMessage;
  readonly status: number;
  /** Names and values alternating, as Node's `res.rawHeaders`. */
  readonly rawHeaders: readonly string[];
  readonly body: Uint8Array;
}

export interface ReceiptOptions {
  /** The platform's key of a keyid; undefined or null when it is unknown. */
  readonly keys: (keyid: string) => VerificationKey | null | undefined;
  /** Which signature of the request the receipt has to name. Default the only one. */
  readonly requestLabel?: string | undefined;
  /** The label of the receipt. Default any: labels carry no meaning (RFC 9421 section 1.1). */
  readonly label?: string | undefined;
  /** What the parameter `tag` has to be. Default any, and none. */
  readonly tag?: string | undefined;
  /** How old the receipt may be, in seconds. Default 300. */
  readonly maxAgeSeconds?: number | undefined;
  /** How far `created` may lie ahead, in seconds. Default 30. */
  readonly clockSkewSeconds?: number | undefined;
  /** Unix seconds; for a receipt that was kept, when it came. Default now. */
  readonly now?: number | undefined;
}

export interface Receipt {
  readonly status: number;
  readonly keyid: string;
  /** Unix seconds. */
  readonly created: number;
  readonly label: string;
}

/** Why an answer is no receipt: a code of the engine's MessageSignatureError, or of a Content-Digest that does not fit. */
export class ReceiptError extends Error {
  override readonly name: string = "ReceiptError";
  /** For example `signature-missing`, `signature-mismatch`, `content-digest-mismatch`. */
  readonly code: string;

  constructor(code: string, message: string, cause?: unknown) {
    super(message, causedBy(cause));
    this.code = code;
  }
}

/**
 * Verifies the platform's signature over this answer to this request (RFC 9421 section 2.4): status, media type, content coding, Location
 * and bytes of the answer; method, path, digest and signature of the request. Throws a ReceiptError; a TypeError if unsigned.
 */
export function verifyReceipt(exchange: SignedExchange, options: ReceiptOptions): Receipt {
  const { request, status, rawHeaders, body } = exchange;
  const { label, tag, maxAgeSeconds = 300, clockSkewSeconds = 30 } = options;
  const response: ResponseMessage = { status, rawHeaders, request };
  const profile: SignatureProfile = {
    requiredComponents: requiredComponents(exchange, options.requestLabel),
    requiredParameters: ["created", "keyid"],
    // A shared secret proves nothing to a third party.
    algorithms: signatureAlgorithms.filter((alg) => alg !== "hmac-sha256"),
    windowSeconds: maxAgeSeconds,
    clockSkewSeconds,
    label,
    tag: tag === undefined ? undefined : { require: [tag] },
  };
  try {
    const received = verify(response, { ...profile, keys: options.keys, now: options.now });
    verifyContentDigest({ rawHeaders }, body, { required: true });
    return { status, keyid: received.keyid, created: received.created ?? Number.NaN, label: received.label };
  } catch (error) {
    if (!(error instanceof MessageSignatureError) && !isGuardError(error)) throw error;
    throw new ReceiptError(error.code, `the answer is no receipt: ${error.message}`, error);
  }
}

function requiredComponents(
  { request, rawHeaders }: SignedExchange,
  requestLabel: string | undefined,
): readonly string[] {
  const [only, ...others] = labelsOf(request);
  const label = requestLabel ?? (others.length === 0 ? only : undefined);
  if (label === undefined || ![only, ...others].includes(label)) {
    throw new TypeError(
      "verifyReceipt: the request has no signature of that label, or several: give requestLabel",
    );
  }
  return receiptComponents({ rawHeaders, request }, label);
}

function labelsOf(request: RequestMessage): readonly string[] {
  const lines = fieldLines(request, "signature-input");
  return lines.length === 0 ? [] : [...parseSignatureInput(lines.join(", ")).keys()];
}
