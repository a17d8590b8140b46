// An async function where an answer is due at once: a request is refused, and its rejection does not end the process.
import { idempotencyHook, payoutPlugin, webhookPlugin } from "@countersign/fastify";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyKeyHeader } from "@countersign/idempotency-guard";
import { expect, test } from "@jest/globals";
import { fastify, type FastifyPluginCallback } from "fastify";
import { setTimeout as sleep } from "node:timers/promises";
import type { AddressInfo } from "node:net";
import { afterTest } from "../support/runs/after-test.ts";
import { send } from "../support/servers/http-client.ts";
import { samplePath as url } from "../support/signers/independent-signer.ts";
import { servicePublicPem } from "../support/signers/test-keys.ts";
import { signPayout } from "./payout-scene.ts";
import { webhookScene } from "./webhook-scene.ts";

const rejects = (async () => {
  throw new Error("the database is down");
}) as () => never;
const allowed = { allow: ["127.0.0.1"] };

const payouts = (
  connection: Readonly<Partial<Record<"clientAddress", () => never>>>,
  addresses: { readonly allow: readonly string[] | { readonly isAllowed: () => never } } = allowed,
): FastifyPluginCallback =>
  payoutPlugin({
    url,
    addresses,
    ...connection,
    signature: { keys: { "test-key": servicePublicPem }, nonces: memoryNonceStore() },
    idempotency: { store: memoryIdempotencyStore() },
    handler: () => "paid",
  });

const guarded =
  (options: object): FastifyPluginCallback =>
  (app, _options, done) => {
    const store = memoryIdempotencyStore();
    const once = idempotencyHook({ store, key: () => "k", fingerprint: () => "f", ...options });
    app.post(url, { preHandler: once }, () => "paid");
    done();
  };

test.each<[string, number, () => FastifyPluginCallback]>([
  ["allow.isAllowed", 503, () => payouts({}, { allow: { isAllowed: rejects } })],
  ["clientAddress", 500, () => payouts({ clientAddress: rejects })],
  [
    "scheme",
    500,
    () => webhookPlugin({ ...webhookScene(false)().options, https: {}, url, scheme: rejects, hide: false }),
  ],
  ["key", 500, () => guarded({ key: rejects })],
  ["caller", 500, () => guarded({ ...idempotencyKeyHeader({ caller: rejects }), fingerprint: () => "f" })],
])("%s that rejects is %d", async (_option, status, plugin) => {
  const app = fastify({ forceCloseConnections: true });
  afterTest(() => app.close());
  app.register(plugin());
  await app.listen({ port: 0, host: "127.0.0.1" });
  const { port } = app.server.address() as AddressInfo;
  const { headers, ...wire } = signPayout();
  const answer = await send(port, { ...wire, headers: [...headers, "Idempotency-Key", '"k"'] });
  expect(answer.status).toBe(status);
  // Unhandled, the rejection fails the test, as it ends a process.
  await sleep(20);
});
