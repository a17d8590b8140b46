import type { FetchRoute } from "@countersign/fetch";
import { receivePayout, receiveWebhook } from "./fetch.js";

/** As far as the code below uses them. */
interface BunServer {
  requestIP(request: Request): { readonly address: string } | null;
}
interface BunOptions {
  fetch(request: Request, server: BunServer): Promise<Response>;
}
type DenoHandler = (
  request: Request,
  info: { remoteAddr: { hostname: string } },
) => Promise<Response>;
declare const Bun: { serve(options: BunOptions): void };
declare const Deno: { serve(handler: DenoHandler): void };
declare const webhookPath: string;

// #region servers
const routes: Record<string, FetchRoute> = {
  "/api/v1/transaction": receivePayout,
  [webhookPath]: receiveWebhook,
};
const answer = async (
  request: Request,
  clientAddress?: string,
): Promise<Response> =>
  routes[new URL(request.url).pathname]?.(request, { clientAddress }) ??
  new Response(null, { status: 404 });

export const onBun = (): void =>
  Bun.serve({
    fetch: (request, server) =>
      answer(request, server.requestIP(request)?.address),
  });

export const onDeno = (): void =>
  Deno.serve((request, { remoteAddr }) =>
    answer(request, remoteAddr.hostname),
  );
// #endregion servers
