import type { KeyObject } from "node:crypto";
import {
  assertNoKeyClaimed,
  createRequestFact,
  guard,
  GuardError,
  type GuardRequest,
  isPromiseLike,
  type Middleware,
  type RequestFact,
} from "@countersign/guard";
import { fieldLines, readRawBody } from "@countersign/raw-body";
import { resolveOptions, type ResolvedOptions, type WebhookHmacOptions } from "./options.ts";
import { matchSignature } from "./payload-signature.ts";
import { askForKeys } from "./ask-for-keys.ts";
import { parseSignature } from "./signature-field.ts";

/** The body of a request whose signature webhookHmac verified. */
export interface VerifiedPayload {
  readonly bytes: Buffer;
  /** The position of the secret in `secrets`, 0 for a single one. */
  readonly secretIndex: number;
}

declare global {
  namespace Express {
    interface WebhookVerification {
      /** The position of the secret that webhookHmac matched. */
      secretIndex?: number | undefined;
    }
    interface Request {
      /** What the webhook guards matched. For display and retiring; to decide by it, use their functions. */
      webhook?: WebhookVerification | undefined;
    }
  }
}

const verified: RequestFact<VerifiedPayload> = createRequestFact();

/** The very bytes that the last webhookHmac of this very request verified; undefined when it did not. */
export function verifiedPayload(req: GuardRequest): VerifiedPayload | undefined {
  return verified.get(req);
}

/**
 * Verifies the HMAC-SHA-256 of a webhook's payload over the bytes as received. Captures them itself unless that has happened.
 * Refuses with 401 by default, with 503 when a secrets function fails. Throws a TypeError when it is built with a bad option.
 */
export function webhookHmac(options: WebhookHmacOptions): Middleware {
  const resolved = resolveOptions(options);
  const { keys } = resolved;
  return guard("webhookHmac", (req) => {
    assertNoKeyClaimed("webhookHmac", req);
    // A second guard on the same request must not live on the verdict of the first.
    verified.delete(req);
    const signature = readSignature(req, resolved);
    const received = { req, signature, options: resolved };
    if (typeof keys !== "function") return verifyBody(received, keys);
    const imported = askForKeys(req, { ...resolved, secrets: keys });
    return isPromiseLike(imported) ? verifyLater(received, imported) : verifyBody(received, imported);
  });
}

interface Received {
  readonly req: GuardRequest;
  /** In base64. */
  readonly signature: string;
  readonly options: ResolvedOptions;
}

async function verifyLater(received: Received, keys: PromiseLike<readonly KeyObject[]>): Promise<void> {
  await verifyBody(received, await keys);
}

function verifyBody(received: Received, keys: readonly KeyObject[]): undefined | Promise<void> {
  const bytes = readRawBody(received.req, received.options.limitBytes);
  if (isPromiseLike(bytes)) return verifyWhenRead(received, keys, bytes);
  verify(received, keys, bytes);
  return undefined;
}

async function verifyWhenRead(
  received: Received,
  keys: readonly KeyObject[],
  bytes: PromiseLike<Buffer>,
): Promise<void> {
  verify(received, keys, await bytes);
}

function verify({ req, signature, options }: Received, keys: readonly KeyObject[], bytes: Buffer): void {
  const secretIndex = matchSignature(signature, bytes, keys);
  if (secretIndex === -1) {
    throw refusal(options.status, "wrong", `${options.header} is not the HMAC-SHA-256 of the body`);
  }
  verified.set(req, { bytes, secretIndex });
  req.webhook = { ...req.webhook, secretIndex };
}

/** The field alone, so that a request without a usable signature is refused before its body is read. */
function readSignature(req: GuardRequest, options: ResolvedOptions): string {
  const { header, signatureEncodings, status } = options;
  const lines = fieldLines(req, header);
  const [line] = lines;
  if (line === undefined) throw refusal(status, "missing", `the request has no ${header} field`);
  const signature = lines.length === 1 ? parseSignature(line, signatureEncodings) : undefined;
  if (signature !== undefined) return signature;
  const message = `${header} is not exactly one HMAC-SHA-256 in ${signatureEncodings.join(" or ")}`;
  throw refusal(status, "malformed", message);
}

function refusal(status: number, reason: "missing" | "malformed" | "wrong", message: string): GuardError {
  return new GuardError({ status, code: `payload-signature-${reason}`, message });
}
