import { answerDigests, type AnswerDigestOptions } from "@countersign/content-digest";
import { responseSigner, type SignResponseOptions } from "@countersign/http-signature-verify/sign";
import { copyBody, replacementResponse } from "./answer.ts";
import { giveUp, readCapped } from "./body.ts";
import type { ConnectionInfo } from "./received-request.ts";
import type { FetchRoute } from "./routes.ts";

// As digestResponse() of Express.
const limitBytes = 1_048_576;

/** `digestResponse` around a route: adds Content-Digest or Repr-Digest (RFC 9530) up to a megabyte. Throws a TypeError on a bad option. */
export function digestedRoute(options: AnswerDigestOptions, route: FetchRoute): FetchRoute {
  // Reports a bad option now; digests nothing.
  answerDigests(
    { method: "GET", rawHeaders: [] },
    { status: 204, rawHeaders: [], body: Buffer.alloc(0) },
    options,
  );
  return async (request: Request, info?: ConnectionInfo) => {
    const { method } = request;
    const asking = { method, rawHeaders: [...request.headers].flat() };
    const response = await route(request, info);
    const { status, statusText } = response;
    const body = method === "HEAD" ? undefined : await copyBody(response, limitBytes);
    if (body === undefined) return response;
    const rawHeaders = [...response.headers].flat();
    const digests = Object.entries(answerDigests(asking, { status, rawHeaders, body }, options));
    if (digests.length === 0) return response;
    // A Response from elsewhere may have immutable headers.
    const headers = new Headers(response.headers);
    for (const [name, value] of digests) headers.set(name, value);
    return new Response(response.body, { status, statusText, headers });
  };
}

/** `signResponse` around a route: signs answers, up to `limit`, to verified requests only. Throws a TypeError on a bad option. */
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
