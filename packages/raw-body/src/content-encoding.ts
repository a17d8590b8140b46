import { GuardError, type GuardRequest } from "@countersign/guard";
import { fieldLines } from "./field-lines.ts";

/**
 * Whether the body came without a content coding. A digest is over the bytes as sent (RFC 9530 section 2): what an
 * inflating parser hands over is not what was signed.
 */
export function hasIdentityEncoding(req: GuardRequest): boolean {
  // Serverless platforms fill `headers` and leave `rawHeaders` empty.
  const joined = req.headers["content-encoding"];
  return (
    (joined === undefined || isIdentity(joined)) && fieldLines(req, "content-encoding").every(isIdentity)
  );
}

/** The refusal of a content coding, with the field that RFC 9110 section 15.5.16 asks for. */
export function contentEncodingUnsupported(): GuardError {
  return new GuardError({
    status: 415,
    code: "content-encoding-unsupported",
    message: "the body has a Content-Encoding other than identity; its bytes as sent cannot be checked",
    headers: { "Accept-Encoding": "identity" },
  });
}

function isIdentity(coding: string): boolean {
  return coding.toLowerCase() === "identity";
}
