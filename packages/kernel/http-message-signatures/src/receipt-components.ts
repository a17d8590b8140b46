import { collectFieldLines, type ResponseMessage } from "./message.ts";

/** Fields that say what the bytes are, or where what was made is: covered where an answer has them. */
const describing = ["content-type", "content-encoding", "location"];

/**
 * What a signature covers that makes an answer the receipt of one request (RFC 9421 section 2.4): status, media type, content coding,
 * Location and digest of the answer; method, path, digest, and the signature with this label, of the request. That signature has the
 * request's nonce, so no two requests have one receipt.
 */
export function receiptComponents(
  { rawHeaders, request }: Pick<ResponseMessage, "rawHeaders" | "request">,
  requestLabel: string,
): readonly string[] {
  const lines = collectFieldLines(rawHeaders);
  // A request without a body has no digest; that it had none is signed by it.
  const hasDigest = collectFieldLines(request?.rawHeaders ?? []).has("content-digest");
  return [
    "@status",
    ...describing.filter((name) => lines.has(name)),
    "content-digest",
    '"@method";req',
    '"@path";req',
    ...(hasDigest ? ['"content-digest";req'] : []),
    `"signature";req;key="${requestLabel}"`,
  ];
}
