import { createHash } from "node:crypto";
import {
  hook,
  idempotencyHook,
  payoutPlugin,
  receivedRequest,
  refusal,
  webhookPlugin,
} from "@countersign/fastify";
import { isGuardError } from "@countersign/core";
import { httpSignatureVerifier } from "@countersign/http-signature-verify";
import { watchOf } from "@countersign/idempotency-guard/internal";
import type { RequestIdempotency } from "@countersign/idempotency-guard";
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import type { AddressInfo } from "node:net";
import { send } from "../support/servers/http-client.ts";
import {
  appErrorOf,
  handlerType,
  letIn,
  noteCode,
  type Adapter,
  type Handler,
  type PolicyScene,
  type Scene,
} from "./scene.ts";

export const fastifyAdapter: Adapter = {
  name: "fastify",
  async open(scene) {
    const app = fastify({ forceCloseConnections: true });
    app.setErrorHandler((error, _request, reply) => answerError(error, scene, reply));
    mount(app, scene);
    await app.listen({ port: 0, host: "127.0.0.1" });
    const { port } = app.server.address() as AddressInfo;
    return { port, send: (wire) => send(port, wire), close: () => app.close() };
  },
};

export function mount(app: FastifyInstance, scene: Scene): void {
  const { path: url, trace } = scene;
  const onReject = noteCode(trace);
  if (scene.kind === "webhook") {
    app.register(webhookPlugin({ ...scene.options, url, hide: scene.hide, onReject }));
  } else if (scene.kind === "payout") {
    const handler = handlerOf(scene.handler, trace);
    app.register(payoutPlugin({ ...scene.options, url, onReject, handler }));
  } else if (scene.kind === "payment") {
    const plugin = payoutPlugin({ ...scene.options, url, onReject });
    scene.mounted?.(plugin);
    app.register(plugin);
  } else if (scene.kind === "policy") {
    mountPolicy(app, scene);
  } else {
    const handler = handlerOf(scene.handler, trace);
    const preHandler = idempotencyHook({
      fingerprint: ({ body }) => createHash("sha256").update(JSON.stringify(body)).digest("base64url"),
      ...scene.options,
      key: ({ body }) => (body as { readonly key?: unknown }).key,
      onReject,
    });
    app.post(url, { preHandler }, (request, reply) =>
      handler(request, reply, { idempotency: watchOf(request)?.owned.handle as RequestIdempotency }),
    );
  }
}

/** Before the router, which answers by itself what it does not know. */
function mountPolicy(app: FastifyInstance, { policies, trace }: PolicyScene): void {
  const refuse = refusal({ onReject: noteCode(trace) });
  for (const policy of policies) {
    const verify = httpSignatureVerifier(policy);
    const check = hook(
      "httpSignatureVerify",
      async (request) => void (await verify(receivedRequest(request))),
    );
    app.addHook("onRequest", (request, reply, next) =>
      check(request, reply, (error) => (error === undefined ? next() : refuse(error, request, reply, next))),
    );
  }
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _payload, done) => done(null));
  app.setNotFoundHandler((_request, reply) => {
    trace.ran += 1;
    return reply.code(200).type(handlerType).send(letIn);
  });
}

function handlerOf(handler: Handler, trace: Scene["trace"]) {
  return async (
    _request: FastifyRequest,
    reply: FastifyReply,
    context: Parameters<Handler>[0],
  ): Promise<FastifyReply> => {
    trace.ran += 1;
    const { status, body } = await handler(context);
    return reply.code(status).type(handlerType).send(body);
  };
}

function answerError(error: unknown, scene: Scene, reply: FastifyReply): void {
  // What Fastify itself refuses, such as a media type, is its own.
  if (isFastifyError(error)) return void reply.send(error);
  if (isGuardError(error)) throw new Error("a refusal came to the app", { cause: error });
  const { status, type, body } = appErrorOf(scene);
  void reply.code(status).type(type).send(body);
}

function isFastifyError(error: unknown): boolean {
  return error instanceof Error && "code" in error && String(error.code).startsWith("FST_");
}
