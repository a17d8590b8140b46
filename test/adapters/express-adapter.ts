import { guardErrors } from "@countersign/express";
import { httpSignatureVerify } from "@countersign/http-signature-verify";
import { idempotencyGuard, type RequestIdempotency } from "@countersign/idempotency-guard";
import { payoutEndpoint, payoutOf } from "countersign/payout";
import { rawBody } from "@countersign/raw-body";
import { webhookEndpoint } from "countersign/webhooks";
import type { ErrorRequestHandler, Express, Request, RequestHandler } from "express";
import { close, listen, send } from "../support/servers/http-client.ts";
import type { ExpressFactory } from "../support/runs/express-versions.ts";
import { keyInBody } from "./key-in-body.ts";
import {
  appErrorOf,
  handlerType,
  letIn,
  noteCode,
  type Adapter,
  type AdapterName,
  type Handler,
  type Scene,
} from "./scene.ts";

export function expressAdapter(name: AdapterName, factory: ExpressFactory): Adapter {
  return {
    name,
    async open(scene) {
      const { server, port } = await listen(appOf(factory, scene));
      return { port, send: (wire) => send(port, wire), close: () => close(server) };
    },
  };
}

function appOf(factory: ExpressFactory, scene: Scene): Express {
  const app = factory();
  const { path, trace } = scene;
  const onReject = noteCode(trace);
  if (scene.kind === "webhook") {
    app.use(path, webhookEndpoint({ ...scene.options, hide: scene.hide, onReject }));
  } else if (scene.kind === "payout") {
    const endpoint = payoutEndpoint({ ...scene.options, onReject });
    app.all(path, endpoint, handlerOf(scene.handler, trace, payoutOf));
  } else if (scene.kind === "payment") {
    const endpoint = payoutEndpoint({ ...scene.options, onReject });
    scene.mounted?.(endpoint);
    app.all(path, endpoint);
  } else if (scene.kind === "policy") {
    app.use(scene.policies.map((policy) => httpSignatureVerify(policy)));
    const letInHandler: RequestHandler = (_req, res) => {
      trace.ran += 1;
      res.setHeader("Content-Type", handlerType).end(letIn);
    };
    app.use(letInHandler, guardErrors({ onReject }));
  } else {
    const guard = idempotencyGuard({ ...scene.options, key: keyInBody });
    app.all(path, rawBody(), guard, handlerOf(scene.handler, trace), guardErrors({ onReject }));
  }
  const failed = appErrorOf(scene);
  // Express tells an error handler by its four parameters.
  const answerAppError: ErrorRequestHandler = (_error, _req, res, _next) => {
    res.status(failed.status).setHeader("Content-Type", failed.type);
    res.end(failed.body);
  };
  app.use(answerAppError);
  return app;
}

function handlerOf(
  handler: Handler,
  trace: Scene["trace"],
  found?: (req: Request) => ReturnType<typeof payoutOf>,
): RequestHandler {
  return async (req, res, next) => {
    try {
      trace.ran += 1;
      const idempotency = req.idempotency as RequestIdempotency;
      const answer = await handler({ idempotency, ...(found && { payout: found(req) }) });
      res.status(answer.status).setHeader("Content-Type", handlerType);
      res.end(answer.body);
    } catch (error) {
      // Express 4 does not see a rejection.
      next(error);
    }
  };
}
