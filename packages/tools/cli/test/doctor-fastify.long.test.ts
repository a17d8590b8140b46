// countersign doctor --app with apps of Fastify: what it finds, and what it has nothing to say about.
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { generateKeyPair } from "@countersign/sandbox";
import { afterAll, describe, expect, test } from "@jest/globals";
import { run } from "./cli-bench.ts";

const folder = mkdtempSync(join(tmpdir(), "countersign-doctor-fastify-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
symlinkSync(
  fileURLToPath(new URL("../../../../node_modules", import.meta.url)),
  join(folder, "node_modules"),
);

// A TEST KEY, TEST SECRETS.
const { publicKeyPem } = generateKeyPair({ keyid: "unused" });

const imports = `
import Fastify from "fastify";
import { idempotencyHook, payoutPlugin, webhookPlugin } from "@countersign/fastify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { createWebhookHandler } from "@countersign/webhooks";
const memory = { allowInProduction: true };
const store = memoryIdempotencyStore({ ...memory, retentionMs: 30 * 86_400_000 });
const payout = (options) => payoutPlugin({
  url: "/pay",
  addresses: { allow: ["192.0.2.1"] },
  signature: { keys: { "service-1": ${JSON.stringify(publicKeyPem)} }, nonces: memoryNonceStore(memory) },
  idempotency: { store, scope: "payout" },
  findBusiness: () => true,
  handler: async () => ({}),
  ...options,
});
const webhook = (options) => webhookPlugin({
  url: "/hooks/0123456789abcdef",
  basicAuth: { username: "service", password: "test-password-of-the-webhook" },
  hmac: { secret: "test-secret-of-the-webhook-endpoint" },
  handler: createWebhookHandler({ store, fallback: () => {} }),
  ...options,
});
const behindProxy = { clientAddress: (request) => request.ip, scheme: (request) => request.protocol };
const guard = idempotencyHook({ store, scope: "refund", key: () => "k", fingerprint: () => "f" });
const handler = async () => ({});
`;

interface Report {
  readonly subjects: readonly string[];
  readonly findings: readonly { readonly id: string; readonly message: string }[];
}

async function report(text: string): Promise<Report> {
  const file = join(mkdtempSync(join(folder, "app-")), "app.mjs");
  writeFileSync(file, imports + text);
  const { out, err } = await run(["doctor", "--app", file, "--json", "--timeout", "60000"]);
  expect(err).toBe("");
  const { subjects, findings } = JSON.parse(out) as Report;
  // Each of these apps has them.
  return { subjects, findings: findings.filter(({ id }) => id !== "memory-store") };
}

describe("countersign doctor --app, of a Fastify app", () => {
  test.each<[string, string, readonly string[]]>([
    [
      "proxies that are listed, and plugins that are told of them",
      'export const app = Fastify({ trustProxy: ["192.0.2.7"] });\napp.register(payout(behindProxy)).register(webhook(behindProxy));',
      [],
    ],
    [
      "plugins in a scope of their own, which takes its time",
      `export const app = Fastify();
       app.register(async (scope) => {
         await new Promise((resolve) => setTimeout(resolve, 50));
         scope.register(payout({ ...behindProxy, findBusiness: undefined }));
       });`,
      ["beneficiary-unchecked"],
    ],
    [
      "a payout that goes by the socket",
      "export const app = Fastify();\napp.register(payout());",
      ["connection-unset"],
    ],
    [
      "a webhook that goes by the socket",
      "export const app = Fastify();\napp.register(webhook({ clientAddress: behindProxy.clientAddress }));",
      ["connection-unset"],
    ],
    [
      "trust in everybody, and a plugin that asks for the address",
      "export const app = Fastify({ trustProxy: true });\napp.register(payout(behindProxy));",
      ["trust-proxy-everybody"],
    ],
    [
      "trust in everybody, and nobody who asks",
      "export const app = Fastify({ trustProxy: true });\napp.register(payout());",
      ["connection-unset"],
    ],
    [
      "the hook behind the parser",
      'export const app = Fastify();\napp.post("/refunds", { preHandler: guard, handler });',
      [],
    ],
    [
      "the hook in front of the parser",
      'export const app = Fastify();\napp.post("/refunds", { onRequest: [guard], handler });',
      ["hook-before-body"],
    ],
    [
      "the hook in front of the parser, in a scope",
      'export const app = Fastify();\napp.register(async (scope) => {\n  scope.addHook("preParsing", guard);\n  scope.post("/refunds", handler);\n});',
      ["hook-before-body"],
    ],
    [
      "an app that a function makes",
      'export const createApp = () => Fastify().post("/refunds", { preParsing: guard, handler });',
      ["hook-before-body"],
    ],
  ])("with %s", async (_name, text, ids) => {
    const { subjects, findings } = await report(text);
    expect({ subjects, ids: findings.map(({ id }) => id) }).toEqual({
      subjects: [expect.stringContaining("(Fastify; ")],
      ids,
    });
  });

  test("says which hook, and where", async () => {
    const { findings } = await report(
      'export const app = Fastify();\napp.post("/refunds", { onRequest: guard, handler });',
    );
    expect(findings.map(({ message }) => message)).toEqual([
      "idempotencyHook is an onRequest step of /refunds, where no body has been read",
    ]);
  });
});
