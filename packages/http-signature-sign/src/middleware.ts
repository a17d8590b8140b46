import { readOptions } from "@countersign/core";
import { finishResponse, type Middleware } from "@countersign/express";
import { factory, signerOf } from "./check.ts";
import { table, type SignResponseOptions } from "./options.ts";

/**
 * Signs the answer of what is mounted behind it, whoever gives it, where the request's own signature was verified: its caller holds a
 * receipt that fits no other request. Mount it before `payoutEndpoint` or `httpSignatureVerify`, behind what changes bodies, such as
 * compression. A paid answer that cannot be signed is 503, and comes again as the 409 of a paid key. Throws a TypeError on a bad option.
 */
export function signResponse(options: SignResponseOptions): Middleware {
  const resolved = readOptions(factory, table, options);
  const sign = signerOf(resolved);
  const middleware: Middleware = (req, res, next) => {
    finishResponse(res, { limitBytes: resolved.limit, finish: (answer) => sign(req, answer) });
    next();
  };
  return Object.defineProperty(middleware, "name", { value: `${factory}Middleware` });
}
