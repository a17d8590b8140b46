import type { ReceivedRequest } from "@countersign/core";
import { asBuffer, isLimitBytes, type BodyCode, type JsonCode } from "@countersign/core/internal";

export type RawBodyCode = BodyCode | JsonCode | "media-type-unsupported" | "raw-body-missing";

/**
 * Reads the exact body once for all checks; the first limit counts. Rejects with a GuardError: 415 for a content coding, 501 for a transfer
 * coding, 413 over the limit, 400 for a wrong Content-Length or a client that left (`request-aborted`); a TypeError for a bad limit.
 */
export async function readBody(request: ReceivedRequest, limitBytes: number): Promise<Buffer> {
  if (!isLimitBytes(limitBytes)) throw new TypeError("readBody: limitBytes must be a positive integer");
  return asBuffer(await request.body(limitBytes));
}
