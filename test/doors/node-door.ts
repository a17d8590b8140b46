import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { guardErrors, type Middleware } from "@countersign/express";
import { idempotencyGuard, type RequestIdempotency } from "@countersign/idempotency-guard";
import { payoutEndpoint, payoutOf } from "@countersign/payout";
import { rawBody } from "@countersign/raw-body";
import { webhookEndpoint } from "@countersign/webhooks";
import { close, listen, send } from "../support/http-client.ts";
import { keyInBody } from "./key-in-body.ts";
import { appError, handlerType, noteCode, type Door, type Scene } from "./scene.ts";

/** Plain node:http: the server chooses by the path, and calls the middlewares by hand. */
export const nodeDoor: Door = {
  name: "node:http",
  async open(scene) {
    const listener = listenerOf(scene);
    const { server, port } = await listen((req, res) => {
      if (pathOf(req) === scene.path) listener(req, res);
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

function listenerOf(scene: Scene): RequestListener {
  const onReject = noteCode(scene.trace);
  if (scene.kind === "webhook") {
    const [endpoint] = webhookEndpoint({ ...scene.options, hide: scene.hide, onReject });
    return (req, res) => endpoint(req, res);
  }
  const guards: Middleware[] =
    scene.kind === "payout"
      ? [payoutEndpoint({ ...scene.options, onReject })]
      : [rawBody(), idempotencyGuard({ ...scene.options, key: keyInBody })];
  const answerError = guardErrors(scene.kind === "payout" ? {} : { onReject });
  return (req, res) => {
    const pending = [...guards];
    const advance = (error?: unknown): void => {
      const guard = pending.shift();
      if (error !== undefined) answerError(error, req, res, () => fail(res));
      else if (guard === undefined) void handle(scene, { req, res }, advance);
      else guard(req, res, advance);
    };
    advance();
  };
}

async function handle(
  scene: Exclude<Scene, { kind: "webhook" }>,
  exchange: {
    readonly req: IncomingMessage & { readonly idempotency?: unknown };
    readonly res: ServerResponse;
  },
  failed: (error: unknown) => void,
): Promise<void> {
  const { req, res } = exchange;
  try {
    scene.trace.ran += 1;
    const idempotency = req.idempotency as RequestIdempotency;
    const payout = scene.kind === "payout" ? { payout: payoutOf(req) } : {};
    const { status, body } = await scene.handler({ idempotency, ...payout });
    res.writeHead(status, { "Content-Type": handlerType }).end(body);
  } catch (error) {
    failed(error);
  }
}

function fail(res: ServerResponse): void {
  res.writeHead(appError.status, { "Content-Type": appError.type }).end(appError.body);
}
