import { createCodingWatch, holdResponse } from "@countersign/express/internal";
import type { Middleware } from "@countersign/express";
import { factoryName, publish, responseSigner } from "./check.ts";
import type { SignResponseOptions } from "./options.ts";

/**
 * Signs answers to verified requests; a receipt fits no other request. Mount it before `payoutEndpoint`, `httpSignatureVerify` and what
 * changes bodies (compression). A paid answer that cannot be signed is 503, then the 409 of a paid key. Throws a TypeError on a bad option.
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
