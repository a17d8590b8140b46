import { createCodingWatch, holdResponse } from "@countersign/express/door";
import type { Middleware } from "@countersign/express";
import { factoryName, publish, responseSigner } from "./check.ts";
import type { SignResponseOptions } from "./options.ts";

/**
 * Signs the answers to requests whose own signature was verified: the caller holds a receipt that fits no other request. Any other answer
 * passes as it comes. Mount it before `payoutEndpoint` or `httpSignatureVerify`, and before what changes bodies, such as compression. A
 * paid answer that cannot be signed is 503, and comes again as the 409 of a paid key. Throws a TypeError on a bad option.
 */
export function signResponse(options: SignResponseOptions): Middleware {
  const sign = responseSigner(options);
  const watchCoding = createCodingWatch(factoryName);
  const middleware: Middleware = (req, res, next) => {
    holdResponse(res, {
      limitBytes: sign.limitBytes,
      isDue: () => sign.signs(req),
      async decide(_status, answer) {
        const signed = await sign(req, answer());
        if ("headers" in signed) watchCoding(req, res);
        return signed;
      },
      unsendable: (error) =>
        publish("answer-unsendable", "an answer could not be sent: it is 500 instead", req, error),
    });
    next();
  };
  return Object.defineProperty(middleware, "name", { value: `${factoryName}Middleware` });
}
