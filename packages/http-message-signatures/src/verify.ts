import { verifyEd25519, type VerificationEngine } from "./ed25519.ts";
import { MessageSignatureError } from "./message-signature-error.ts";
import {
  assertTimely,
  readSignature,
  type ReceivedSignature,
  type SignatureProfile,
} from "./received-signature.ts";
import type { RequestMessage } from "./request-message.ts";
import { buildSignatureBase } from "./signature-base.ts";
import type { VerificationKey } from "./verification-key.ts";

/** Options of {@link verify}. */
export interface VerifyOptions extends SignatureProfile {
  /** The key of a keyid; undefined when it is unknown. Called at most once. */
  readonly keys: (keyid: string) => VerificationKey | undefined;
  /** Unix seconds; default the system clock. */
  readonly now?: number | undefined;
  readonly engine?: VerificationEngine | undefined;
}

/**
 * Verifies the signature of a request (RFC 9421 section 3.2): form, coverage, window, key, Ed25519. The caller still has to
 * compare Content-Digest with the body and to claim the nonce. Throws a MessageSignatureError.
 */
export function verify(message: RequestMessage, options: VerifyOptions): ReceivedSignature {
  const received = readSignature(message, options);
  assertTimely(received, options, options.now ?? Date.now() / 1000);
  verifySignature(received, options.keys(received.keyid), options.engine);
  return received;
}

/**
 * The last step of {@link verify}, for callers that fetch keys asynchronously. Throws a MessageSignatureError:
 * `key-unknown`, `key-mismatch`, `key-retired`, `alg-mismatch`, `signature-mismatch`, and those of the covered components.
 */
export function verifySignature(
  received: ReceivedSignature,
  key: VerificationKey | undefined,
  engine?: VerificationEngine,
): void {
  if (key === undefined) throw new MessageSignatureError("key-unknown", "no key is known under this keyid");
  if (key.keyid !== received.keyid) {
    throw new MessageSignatureError("key-mismatch", "the key store returned the key of another keyid");
  }
  if (key.alg !== received.alg)
    throw new MessageSignatureError("alg-mismatch", "alg is not the algorithm of the key");
  const { created } = received;
  if (key.retired === true || created < (key.notBefore ?? 0) || created > (key.notAfter ?? Infinity)) {
    throw new MessageSignatureError("key-retired", "the key was not valid when the signature was created");
  }
  // Everything in a base is ASCII: strings, identifiers and covered values were checked.
  const base = Buffer.from(buildSignatureBase(received.values, received.input), "latin1");
  if (!verifyEd25519(key, base, received.signature, engine)) {
    throw new MessageSignatureError("signature-mismatch", "the signature does not match the request");
  }
}
