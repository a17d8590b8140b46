import { GuardError, type GuardRequest } from "@countersign/guard";

/**
 * Whether the body came without a transfer coding other than `chunked`, the only one that Node decodes. With `gzip, chunked` it
 * hands over what gzip made, which is not the content that a digest or signature is of (RFC 9530 section 2).
 */
export function hasKnownTransferCoding({ headers }: GuardRequest): boolean {
  return (headers["transfer-encoding"] ?? "chunked").toLowerCase() === "chunked";
}

/** The refusal that RFC 9112 section 6.1 asks for. */
export function transferCodingUnsupported(): GuardError {
  return new GuardError({
    status: 501,
    code: "transfer-coding-unsupported",
    message: "the body has a Transfer-Encoding other than chunked, which is not decoded",
  });
}
