// What countersign:built shows of factories that were given secrets, and of what everybody may know.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { builtChannelName } from "@countersign/core";
import { payoutPlugin, webhookPlugin } from "@countersign/fastify";
import { payoutRoute, webhookRoute } from "@countersign/fetch";
import {
  httpSignatureVerify,
  importVerificationKey,
  memoryNonceStore,
} from "@countersign/http-signature-verify";
import { memoryAnswerStore, memoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { payoutEndpoint } from "@countersign/payout";
import { createServiceClient } from "@countersign/service-client";
import { webhookBasicAuth } from "@countersign/webhook-basic-auth";
import { webhookHmac } from "@countersign/webhook-hmac";
import { createWebhookHandler, webhookEndpoint } from "@countersign/webhooks";
import { expect, test } from "@jest/globals";
import { servicePublicPem } from "../support/test-keys.ts";

// TEST SECRETS: this text is in each of them, and must be in nothing that is shown.
const mark = "hush-hush";
const secret = `${mark}-secret-of-the-test`;
const password = `${mark}-password-of-the-test`;
const username = `${mark}-username`;
const bytes = Buffer.from(`${mark}-${"x".repeat(22)}`);
const shared = importVerificationKey("shared-1", bytes, { alg: "hmac-sha256" });
const store = memoryIdempotencyStore({ retentionMs: 30 * 86_400_000 });
const nonces = memoryNonceStore();

const payout = (scope: string) => ({
  addresses: { allow: ["192.0.2.1", "192.0.2.0/28"] },
  signature: { keys: { "service-1": servicePublicPem }, nonces },
  idempotency: { store, scope },
});
const webhook = {
  basicAuth: { username, password },
  hmac: { secret },
  handler: createWebhookHandler({ store, fallback: () => {} }),
};
const replayed = {
  store,
  scope: "replayed",
  key: () => "k",
  replay: { answers: memoryAnswerStore(), encryptionKeys: [{ id: "1", secret: bytes.toString("base64") }] },
};

/** What is shown while `build` runs. */
function shownBy(build: () => unknown): readonly unknown[] {
  const shown: unknown[] = [];
  const hear = (message: unknown): void => void shown.push(message);
  subscribe(builtChannelName, hear);
  build();
  unsubscribe(builtChannelName, hear);
  return shown;
}

const signature = {
  requiredComponents: ["@method", "@path", "content-type", "content-digest"],
  requiredParameters: expect.arrayContaining(["created", "expires", "keyid", "nonce"]),
  allowUnsignedQuery: false,
  allowUnsignedBody: false,
  keys: [
    {
      keyid: "service-1",
      thumbprint: expect.stringMatching(/^[\w-]{43}$/),
      notBefore: null,
      notAfter: null,
      revokedAt: null,
    },
  ],
};
const payoutFacts = (factory: string): readonly unknown[] => [
  { factory, facts: { findBusiness: false } },
  { factory, holder: "addresses", facts: { allow: 2, dangerouslyAllowAnyAddress: false } },
  { factory, holder: "signature", facts: signature },
  { factory, holder: "idempotency", facts: { store: { lists: true, retentionMs: 2_592_000_000 } } },
];
const long = { short: false };
const webhookFacts = (factory: string): readonly unknown[] => [
  { factory, holder: "https", facts: { dangerouslyAllowHttp: false } },
  { factory, holder: "basicAuth", facts: { password: long, credentials: long } },
  { factory, holder: "hmac", facts: { secret: long, secrets: long } },
];
const noConnection = { clientAddress: false, scheme: false };
const sharedKey = expect.objectContaining({ keyid: "shared-1", thumbprint: null });

test.each<[string, () => unknown, readonly unknown[]]>([
  ["payoutEndpoint", () => payoutEndpoint(payout("a")), payoutFacts("payoutEndpoint")],
  [
    "payoutPlugin",
    () => payoutPlugin({ ...payout("b"), url: "/pay", handler: () => {} }),
    [{ factory: "payoutPlugin", facts: noConnection }, ...payoutFacts("payoutPlugin")],
  ],
  ["payoutRoute", () => payoutRoute(payout("c"), () => new Response()), payoutFacts("payoutRoute")],
  ["webhookEndpoint", () => webhookEndpoint(webhook), webhookFacts("webhookEndpoint")],
  [
    "webhookPlugin",
    () => webhookPlugin({ ...webhook, url: `/hooks/${mark}-0123456789abcdef` }),
    [{ factory: "webhookPlugin", facts: noConnection }, ...webhookFacts("webhookPlugin")],
  ],
  ["webhookRoute", () => webhookRoute(webhook), webhookFacts("webhookRoute")],
  [
    "webhookBasicAuth, of several",
    () =>
      webhookBasicAuth({
        credentials: [
          { username, password },
          { username, password: mark },
        ],
      }),
    [{ factory: "webhookBasicAuth", facts: { password: long, credentials: { short: true } } }],
  ],
  [
    "webhookBasicAuth, of a function",
    () => webhookBasicAuth({ verify: () => true }),
    [{ factory: "webhookBasicAuth", facts: { password: long, credentials: long } }],
  ],
  [
    "webhookHmac, of several",
    () => webhookHmac({ secrets: [secret, mark] }),
    [{ factory: "webhookHmac", facts: { secret: long, secrets: { short: true } } }],
  ],
  [
    "webhookHmac, of a function",
    () => webhookHmac({ secrets: () => [mark] }),
    [{ factory: "webhookHmac", facts: { secret: long, secrets: long } }],
  ],
  [
    "httpSignatureVerify, of a shared secret",
    () => httpSignatureVerify({ keys: { "shared-1": shared }, algorithms: ["hmac-sha256"], nonces }),
    [{ factory: "httpSignatureVerify", facts: { ...signature, keys: [sharedKey] } }],
  ],
  [
    "idempotencyGuard, with keys of answers",
    () => idempotencyGuard(replayed),
    [{ factory: "idempotencyGuard", facts: { store: { lists: true, retentionMs: 2_592_000_000 } } }],
  ],
  [
    "createServiceClient",
    () => createServiceClient({ baseUrl: "https://service.example", apiKey: mark }),
    [],
  ],
  [
    "memoryNonceStore",
    memoryNonceStore,
    [{ factory: "memoryNonceStore", facts: { allowInProduction: false } }],
  ],
])("%s shows no secret", (_name, build, facts) => {
  const shown = shownBy(build);
  // What goes to another process has to be JSON.
  const text = JSON.stringify(shown);
  expect(JSON.parse(text)).toEqual(facts);
  for (const form of ["utf8", "base64", "hex"] as const) {
    const start = Buffer.from(mark).toString(form);
    // Of base64 without what the bytes behind decide.
    expect(text).not.toContain(form === "base64" ? start.slice(0, 12) : start);
  }
});
