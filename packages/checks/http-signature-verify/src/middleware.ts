import { keyClaims } from "@countersign/core/internal";
import { guard, receivedRequest, type GuardRequest, type Middleware } from "@countersign/express";
import { httpSignatureVerifier, methodOverride, type VerifiedSignature } from "./check.ts";
import type { HttpSignatureVerifyOptions } from "./options.ts";

declare global {
  namespace Express {
    interface Request {
      /** Set by httpSignatureVerify. For display; to decide by it, use `verifiedSignature(req)`. */
      signature?: VerifiedSignature | undefined;
    }
  }
}

/**
 * Verifies the signature (RFC 9421) of a request, its body's digest (RFC 9530), time window and nonce. Works alone or after rawBody and
 * contentDigest. Refuses with 401 for these, 503 when a store fails, 413 and 415 for the body. Throws a TypeError on a bad option.
 */
export function httpSignatureVerify(options: HttpSignatureVerifyOptions): Middleware {
  const verify = httpSignatureVerifier(options);
  return guard("httpSignatureVerify", async (req: GuardRequest & { readonly originalMethod?: unknown }) => {
    keyClaims.assertNone("httpSignatureVerify", req);
    // Set by middlewares that replaced the method on the wire.
    if ("originalMethod" in req && req.originalMethod !== req.method) throw methodOverride();
    req.signature = await verify(receivedRequest(req));
  });
}
