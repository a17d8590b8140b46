import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { guardErrors, type Middleware } from "@countersign/express";
import { httpSignatureVerify } from "@countersign/http-signature-verify";
import { idempotencyGuard, type RequestIdempotency } from "@countersign/idempotency-guard";
import { payoutEndpoint, payoutOf } from "countersign/payout";
import { rawBody } from "@countersign/raw-body";
import { webhookEndpoint } from "countersign/webhooks";
import { close, listen, send } from "../support/servers/http-client.ts";
import { keyInBody } from "./key-in-body.ts";
import { appErrorOf, handlerType, letIn, noteCode, type Adapter, type Scene } from "./scene.ts";

/** Plain node:http: the server chooses by the path, and calls the middlewares by hand. */
export const nodeAdapter: Adapter = {
  name: "node:http",
  async open(scene) {
    const listener = listenerOf(scene);
    const { server, port } = await listen((req, res) => {
      if (scene.kind === "policy" || pathOf(req) === scene.path) listener(req, res);
      else res.writeHead(404).end();
    });
    return { port, send: (wire) => send(port, wire), close: () => close(server) };
  },
};

/** As most people route by hand. */
export function pathOf({ url = "" }: { readonly url?: string | undefined }): string {
  const base = "http://platform.example";
  return URL.canParse(url, base) ? new URL(url, base).pathname : "";
}

export function listenerOf(scene: Scene): RequestListener {
  const onReject = noteCode(scene.trace);
  if (scene.kind === "webhook") {
    const [endpoint] = webhookEndpoint({ ...scene.options, hide: scene.hide, onReject });
    return (req, res) => endpoint(req, res);
  }
  const guards = guardsOf(scene, onReject);
  const answersItself = scene.kind === "payout" || scene.kind === "payment";
  const answerError = guardErrors(answersItself ? {} : { onReject });
  return (req, res) => {
    const pending = [...guards];
    const advance = (error?: unknown): void => {
      const guard = pending.shift();
      if (error !== undefined) answerError(error, req, res, () => fail(scene, res));
      else if (guard === undefined) void handle(scene, { req, res }, advance);
      else guard(req, res, advance);
    };
    advance();
  };
}

type ChainScene = Exclude<Scene, { kind: "webhook" }>;

function guardsOf(scene: ChainScene, onReject: ReturnType<typeof noteCode>): readonly Middleware[] {
  if (scene.kind === "payout") return [payoutEndpoint({ ...scene.options, onReject })];
  if (scene.kind === "payment") {
    const endpoint = payoutEndpoint({ ...scene.options, onReject });
    scene.mounted?.(endpoint);
    return [endpoint];
  }
  if (scene.kind === "policy") return scene.policies.map((policy) => httpSignatureVerify(policy));
  return [rawBody(), idempotencyGuard({ ...scene.options, key: keyInBody })];
}

async function handle(
  scene: ChainScene,
  exchange: {
    readonly req: IncomingMessage & { readonly idempotency?: unknown };
    readonly res: ServerResponse;
  },
  failed: (error: unknown) => void,
): Promise<void> {
  const { req, res } = exchange;
  try {
    scene.trace.ran += 1;
    if (scene.kind === "policy") return void res.writeHead(200, { "Content-Type": handlerType }).end(letIn);
    if (scene.kind === "payment") throw new Error("the endpoint has called what comes after it");
    const idempotency = req.idempotency as RequestIdempotency;
    const payout = scene.kind === "payout" ? { payout: payoutOf(req) } : {};
    const { status, body } = await scene.handler({ idempotency, ...payout });
    res.writeHead(status, { "Content-Type": handlerType }).end(body);
  } catch (error) {
    failed(error);
  }
}

function fail(scene: Scene, res: ServerResponse): void {
  const { status, type, body } = appErrorOf(scene);
  res.writeHead(status, { "Content-Type": type }).end(body);
}
