import { responseSigner, type SignResponseOptions } from "@countersign/http-signature-sign";
import { replacementResponse } from "./answer.ts";
import type { ConnectionInfo } from "./received-request.ts";
import type { FetchRoute } from "./routes.ts";

/**
 * `signResponse` around a route: where it has verified the request's signature, its answer, read whole, is the receipt of that request.
 * Throws a TypeError on a bad option.
 */
export function signedRoute(options: SignResponseOptions, route: FetchRoute): FetchRoute {
  const sign = responseSigner(options, "signedRoute");
  return async (request: Request, info?: ConnectionInfo) => {
    const response = await route(request, info);
    const { status, statusText } = response;
    const headers = new Headers(response.headers);
    const body = Buffer.from(await response.arrayBuffer());
    const signed = await sign(request, { status, rawHeaders: [...headers].flat(), body });
    if (!("headers" in signed)) return replacementResponse(signed);
    for (const [name, value] of Object.entries(signed.headers)) headers.set(name, String(value));
    return new Response(response.body === null ? null : body, { status, statusText, headers });
  };
}
