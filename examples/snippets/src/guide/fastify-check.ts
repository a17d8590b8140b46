import {
  hook,
  idempotencyHook,
  receivedRequest,
  refusal,
} from "@countersign/fastify";
import { type SqliteDatabase, createStores } from "@countersign/store-sql";
import { payloadVerifier } from "@countersign/webhook-hmac";
import { type FastifyInstance, type FastifyRequest, fastify } from "fastify";

/** `handle` runs once for a delivery; `secrets` are the new and the old. */
export function createApp(
  database: SqliteDatabase,
  secrets: readonly string[],
  handle: (event: unknown) => void,
): FastifyInstance {
  const limit = "25mb"; // GitHub's own
  const verify = payloadVerifier<FastifyRequest>({
    scheme: "github",
    secrets,
    limit,
  });
  const verified = hook(
    "webhookHmac",
    async (request) => {
      await verify(receivedRequest(request), request);
    },
    // All its 401s look the same; Fastify's own would say the reason.
    refusal({}),
  );
  const once = idempotencyHook({
    store: createStores({ database }).idempotency,
    scope: "github",
    key: ({ headers }: FastifyRequest) => headers["x-github-delivery"],
    // A later attempt of a delivery may have other bytes.
    fingerprint: () => "delivery",
    doneStatus: 200,
  });

  const app = fastify({ bodyLimit: 25 * 1024 * 1024 });
  app.post("/webhooks/github", {
    onRequest: verified, // before Fastify's parser, which reads these bytes
    preHandler: once, // after it
    handler: async (request) => {
      handle(request.body);
      return { received: true };
    },
  });
  return app;
}
