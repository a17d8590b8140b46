import { responseSigner, type SignResponseOptions } from "@countersign/http-signature-verify/sign";
import { replacementResponse } from "./answer.ts";
import { giveUp, readCapped } from "./body.ts";
import type { ConnectionInfo } from "./received-request.ts";
import type { FetchRoute } from "./routes.ts";

/**
 * `signResponse` around a route: where it has verified the request's signature, its answer, read up to `limit`, is the receipt of that
 * request. Any other answer is handed on as it is. Throws a TypeError on a bad option.
 */
export function signedRoute(options: SignResponseOptions, route: FetchRoute): FetchRoute {
  const sign = responseSigner(options, "signedRoute");
  return async (request: Request, info?: ConnectionInfo) => {
    const response = await route(request, info);
    if (!sign.signs(request)) return response;
    const { status, statusText } = response;
    const headers = new Headers(response.headers);
    const isHead = request.method === "HEAD";
    if (isHead) giveUp(response.body);
    const body = isHead ? Buffer.alloc(0) : await readCapped(response.body, sign.limitBytes);
    const signed = await sign(request, { status, rawHeaders: [...headers].flat(), body });
    if (!("headers" in signed)) return replacementResponse(signed);
    for (const [name, value] of Object.entries(signed.headers)) headers.set(name, String(value));
    const isEmpty = isHead || response.body === null;
    return new Response(isEmpty ? null : body, { status, statusText, headers });
  };
}
