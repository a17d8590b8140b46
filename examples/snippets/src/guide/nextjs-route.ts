// app/api/v1/transaction/route.ts
// Your platform's module, as above.
import { receivePayout } from "../fetch.js";

export const dynamic = "force-dynamic";

export const POST = (request: Request): Promise<Response> =>
  // Written by your proxy, which replaces what a caller sends; nobody else
  // may reach the server.
  receivePayout(request, {
    clientAddress: request.headers.get("x-real-ip") ?? undefined,
  });
