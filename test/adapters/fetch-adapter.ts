import {
  checkedRoute,
  idempotentRoute,
  payoutRoute,
  webhookRoute,
  type FetchRoute,
} from "@countersign/fetch";
import type { ConnectionInfo } from "../../packages/adapters/fetch/dist/received-request.js";
import { httpSignatureVerifier } from "@countersign/http-signature-verify";
import type { RequestIdempotency } from "@countersign/idempotency-guard";
import { keyInBody } from "./key-in-body.ts";
import {
  appErrorOf,
  handlerType,
  letIn,
  noteCode,
  Unsendable,
  type Adapter,
  type Handler,
  type PolicyScene,
  type Scene,
} from "./scene.ts";
import type { WireAnswer, WireRequest } from "../support/servers/http-client.ts";

/** A router and its routes, as every `fetch` handler has it. `path` is what the router goes by. */
export type FetchApp = (request: Request, path: string, info: ConnectionInfo) => Promise<Response>;

/** The routes called directly: the Request is made of the row, and nothing says what was on the wire. */
export const fetchAdapter: Adapter = {
  name: "fetch",
  open: async (scene) => {
    const app = fetchApp(scene);
    const send = async (wire: WireRequest): Promise<WireAnswer> => {
      const request = requestOf(wire);
      const { pathname } = new URL(request.url);
      return answerOf(request, await app(request, pathname, { clientAddress: "127.0.0.1" }));
    };
    return { send, close: async () => undefined };
  },
};

export function fetchApp(scene: Scene): FetchApp {
  const routed = routes(scene);
  return async (request, path, info) => {
    try {
      return await routed(request, path, info);
    } catch {
      return appErrorResponse(scene);
    }
  };
}

/** As {@link fetchApp}, without the app's answer to what rejects. */
export function routes(scene: Scene): FetchApp {
  const route = routeOf(scene);
  return async (request, path, info) =>
    path !== scene.path && scene.kind !== "policy" ? notFound() : route(request, info);
}

export function appErrorResponse(scene: Scene): Response {
  const { status, type, body } = appErrorOf(scene);
  return new Response(status === 204 ? null : body, { status, headers: { "Content-Type": type } });
}

const notFound = (): Response => new Response("nothing is here", { status: 404 });

function routeOf(scene: Scene): FetchRoute {
  const { trace } = scene;
  const onReject = noteCode(trace);
  if (scene.kind === "webhook") {
    return webhookRoute({ ...scene.options, hide: scene.hide && notFound, onReject });
  }
  if (scene.kind === "payout") {
    return payoutRoute({ ...scene.options, onReject }, (_request, context) => handle(scene, context));
  }
  if (scene.kind === "payment") {
    const route = payoutRoute({ ...scene.options, onReject });
    scene.mounted?.(route);
    return route;
  }
  if (scene.kind === "policy") return policyRoute(scene);
  // Where a request passes without a key, no row's handler looks at it.
  return idempotentRoute({ ...scene.options, key: keyInBody, onReject }, (_request, idempotency) =>
    handle(scene, { idempotency: idempotency as RequestIdempotency }),
  );
}

function policyRoute({ policies, trace }: PolicyScene): FetchRoute {
  const verifiers = policies.map((policy) => httpSignatureVerifier(policy));
  const check = async (received: Parameters<(typeof verifiers)[number]>[0]): Promise<void> => {
    for (const verify of verifiers) await verify(received);
  };
  return checkedRoute({ name: "httpSignatureVerify", onReject: noteCode(trace) }, check, () => {
    trace.ran += 1;
    return new Response(letIn, { headers: { "Content-Type": handlerType } });
  });
}

async function handle(
  { trace, handler }: { readonly trace: Scene["trace"]; readonly handler: Handler },
  context: Parameters<Handler>[0],
): Promise<Response> {
  trace.ran += 1;
  const { status, body } = await handler(context);
  return new Response(body ?? null, { status, headers: { "Content-Type": handlerType } });
}

const origin = "http://platform.example";

function requestOf({ method, path, headers, body }: WireRequest): Request {
  const lines = new Headers();
  try {
    for (let index = 0; index < headers.length; index += 2) {
      lines.append(headers[index] ?? "", headers[index + 1] ?? "");
    }
    const content = body.length === 0 ? null : new Uint8Array(body);
    const request = new Request(origin + path, { method, headers: lines, body: content });
    if (request.url === origin + path) return request;
  } catch (error) {
    throw new Unsendable("no Request can be made of it", { cause: error });
  }
  throw new Unsendable("a Request has another target");
}

async function answerOf({ method }: Request, response: Response): Promise<WireAnswer> {
  const { status, headers } = response;
  const body = await response.text();
  // Servers send none.
  return { status, headers: Object.fromEntries(headers), body: method === "HEAD" ? "" : body };
}
