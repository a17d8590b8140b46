import { createRequestFact, type GuardRequest, type RequestFact } from "@countersign/guard";
import { hasIdentityEncoding } from "./content-encoding.ts";
import { isCut } from "./http2-body.ts";
import { hasKnownTransferCoding } from "./transfer-encoding.ts";

declare global {
  namespace Express {
    interface Request {
      /** The exact bytes of the body. For the app to read; guards ask `capturedRawBody`. */
      rawBody?: Buffer | undefined;
    }
  }
}

const capturedBytes: RequestFact<Buffer> = createRequestFact();

/** The bytes of the body when they have been captured. Never what another middleware wrote to `req.rawBody` since. */
export function capturedRawBody(req: GuardRequest): Buffer | undefined {
  return capturedBytes.get(req);
}

/** Records the bytes for every later guard; the first record stays. */
export function recordRawBody(req: GuardRequest, bytes: Buffer): Buffer {
  const earlier = capturedBytes.get(req);
  if (earlier !== undefined) return earlier;
  capturedBytes.set(req, bytes);
  req.rawBody = bytes;
  return bytes;
}

/**
 * For servers that parse every body: `express.json({ verify: captureRawBody })`. Keeps the parser's own buffer, without a copy.
 * Never throws: Express would answer 403 and put the payload on the error. A body with a coding is not kept; the guard answers 415
 * or 501. Nor is one that was cut.
 */
export function captureRawBody(req: GuardRequest, _res: unknown, buffer: Buffer, _encoding?: string): void {
  if (!Buffer.isBuffer(buffer) || isCut(req)) return;
  if (!hasIdentityEncoding(req) || !hasKnownTransferCoding(req)) return;
  recordRawBody(req, buffer);
}
