import { hash } from "node:crypto";
import { capturedRawBody, GuardError } from "@countersign/core";
import type { IdempotencyGuardCode } from "./codes.ts";

/**
 * SHA-256 of the body as received: of the captured bytes, not of `req.rawBody`, which every middleware can write. Without one every
 * payload would look the same, so that is an error (500).
 */
export function bodyFingerprint(subject: object): string {
  const bytes = capturedRawBody(subject);
  if (bytes !== undefined && bytes.length > 0) return hash("sha256", bytes, "base64url");
  throw fingerprintMissing();
}

/** Nothing tells one payload from another. */
export function fingerprintMissing(): GuardError<IdempotencyGuardCode> {
  return new GuardError<IdempotencyGuardCode>({
    status: 500,
    code: "fingerprint-missing",
    message:
      "idempotencyGuard found no captured body to tell one payload from another: mount rawBody() or the signature guard " +
      "before it, give your body parser verify: captureRawBody, or give the option fingerprint",
  });
}

const printable = /^[\x20-\x7e]{1,128}$/;

/** The fingerprint as the option returned it; throws a GuardError (500) on what no store promises to keep. */
export function checkFingerprint(fingerprint: unknown): string {
  if (typeof fingerprint === "string" && printable.test(fingerprint)) return fingerprint;
  throw new GuardError<IdempotencyGuardCode>({
    status: 500,
    code: "fingerprint-invalid",
    message: "idempotencyGuard: option fingerprint must return 1 to 128 printable ASCII characters",
  });
}
