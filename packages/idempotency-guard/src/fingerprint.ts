import { hash } from "node:crypto";
import { GuardError, withDeadline, type GuardRequest } from "@countersign/guard";
import { capturedRawBody } from "@countersign/raw-body";
import type { ResolvedKeyOptions } from "./key-options.ts";

/**
 * SHA-256 of the body as received: of the captured bytes, not of `req.rawBody`, which every middleware can write. Without one every
 * payload would look the same, so that is an error (500).
 */
export function bodyFingerprint(req: GuardRequest): string {
  const bytes = capturedRawBody(req);
  if (bytes !== undefined && bytes.length > 0) return hash("sha256", bytes, "base64url");
  throw new GuardError({
    status: 500,
    code: "fingerprint-missing",
    message:
      "idempotencyGuard found no captured body to tell one payload from another: mount rawBody() or the signature guard " +
      "before it, give your body parser verify: captureRawBody, or give the option fingerprint",
  });
}

/** The fingerprint that is due later; rejects with a GuardError (503) when it is too late. No key is claimed by then. */
export function fingerprintInTime(
  fingerprint: PromiseLike<string>,
  { storeTimeoutMs, retryAfterSeconds }: ResolvedKeyOptions,
): Promise<string> {
  const late = (): GuardError =>
    new GuardError({
      status: 503,
      code: "fingerprint-unavailable",
      message: `idempotencyGuard: option fingerprint did not answer within ${storeTimeoutMs} ms`,
      headers: { "Retry-After": String(retryAfterSeconds) },
    });
  return withDeadline(Promise.resolve(fingerprint), storeTimeoutMs, late);
}

const printable = /^[\x20-\x7e]{1,128}$/;

/** The fingerprint as the option returned it; throws a GuardError (500) on what no store promises to keep. */
export function checkFingerprint(fingerprint: unknown): string {
  if (typeof fingerprint === "string" && printable.test(fingerprint)) return fingerprint;
  throw new GuardError({
    status: 500,
    code: "fingerprint-invalid",
    message: "idempotencyGuard: option fingerprint must return 1 to 128 printable ASCII characters",
  });
}
