// What countersign:built shows of factories that were given secrets, and of what everybody may know.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { builtChannelName } from "@countersign/core/internal";
import { payoutPlugin, webhookPlugin } from "@countersign/fastify";
import { payoutRoute, webhookRoute } from "@countersign/fetch";
import {
  httpSignatureVerify,
  importVerificationKey,
  memoryNonceStore,
  type HttpSignatureVerifyOptions,
} from "@countersign/http-signature-verify";
import { memoryAnswerStore, memoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { payoutEndpoint } from "countersign/payout";
import { webhookBasicAuth } from "@countersign/webhook-basic-auth";
import { signatureSchemes, webhookHmac } from "@countersign/webhook-hmac";
import { createWebhookHandler, webhookEndpoint } from "countersign/webhooks";
import { expect, test } from "@jest/globals";
import { servicePublicPem } from "../support/signers/test-keys.ts";

// TEST SECRETS: this text is in each of them, and must be in nothing that is shown.
const mark = "hush-hush";
const secret = `${mark}-secret-of-the-test`;
const password = `${mark}-password-of-the-test`;
const username = `${mark}-username`;
const bytes = Buffer.from(`${mark}-${"x".repeat(22)}`);
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
  replay: {
    answers: memoryAnswerStore(),
    callers: "shared" as const,
    encryptionKeys: [{ id: "1", secret: bytes.toString("base64") }],
  },
};

const sharedSecret: HttpSignatureVerifyOptions = {
  keys: { "shared-1": importVerificationKey("shared-1", bytes, { alg: "hmac-sha256" }) },
  algorithms: ["hmac-sha256"],
  nonces,
};

function shownBy(build: () => unknown): readonly unknown[] {
  const shown: unknown[] = [];
  const hear = (message: unknown): void => void shown.push(message);
  subscribe(builtChannelName, hear);
  build();
  unsubscribe(builtChannelName, hear);
  return shown;
}

test.each<[string, () => unknown]>([
  ["payoutEndpoint", () => payoutEndpoint(payout("a"))],
  ["payoutPlugin", () => payoutPlugin({ ...payout("b"), url: "/pay", handler: () => {} })],
  ["payoutRoute", () => payoutRoute(payout("c"), () => new Response())],
  ["webhookEndpoint", () => webhookEndpoint(webhook)],
  ["webhookPlugin", () => webhookPlugin({ ...webhook, url: `/hooks/${mark}-0123456789abcdef` })],
  ["webhookRoute", () => webhookRoute(webhook)],
  ["webhookBasicAuth", () => webhookBasicAuth({ credentials: [{ username, password }] })],
  ["webhookHmac", () => webhookHmac({ secrets: [secret, mark] })],
  ["httpSignatureVerify", () => httpSignatureVerify(sharedSecret)],
  ["idempotencyGuard", () => idempotencyGuard(replayed)],
])("%s shows something, and no secret", (factory, build) => {
  const shown = shownBy(build);
  // What goes to another process has to be JSON.
  const text = JSON.stringify(shown);
  expect(JSON.parse(text)).toEqual(shown);
  expect(text).toContain(`{"factory":"${factory}",`);
  for (const form of ["utf8", "base64", "hex"] as const) {
    const start = Buffer.from(mark).toString(form);
    // Of base64 without what the bytes behind decide.
    expect(text).not.toContain(form === "base64" ? start.slice(0, 12) : start);
  }
});

test("options are shown by their names, under the option that holds them", () => {
  const factory = "payoutEndpoint";
  const publicKey = {
    keyid: "service-1",
    thumbprint: expect.stringMatching(/^[\w-]{43}$/),
    notBefore: null,
    notAfter: null,
    revokedAt: null,
  };
  expect(shownBy(() => payoutEndpoint(payout("d")))).toEqual([
    { factory, facts: { findBusiness: false } },
    { factory, holder: "addresses", facts: { allow: 2, dangerouslyAllowAnyAddress: false } },
    {
      factory,
      holder: "signature",
      facts: {
        requiredComponents: ["@method", "@path", "content-type", "content-digest"],
        requiredParameters: expect.arrayContaining(["created", "expires", "keyid", "nonce"]),
        allowUnsignedQuery: false,
        allowUnsignedBody: false,
        keys: [publicKey],
      },
    },
    { factory, holder: "idempotency", facts: { store: { lists: true, retentionMs: 2_592_000_000 } } },
  ]);
});

test("of a shared secret there is no thumbprint", () => {
  const keys = [expect.objectContaining({ keyid: "shared-1", thumbprint: null })];
  const facts = expect.objectContaining({ keys });
  expect(shownBy(() => httpSignatureVerify(sharedSecret))).toEqual([
    { factory: "httpSignatureVerify", facts },
  ]);
});

const inHex = {
  scheme: { ...signatureSchemes.github, secretEncoding: "hex" as const },
  secret: "ab".repeat(15),
};
const short = { username, password: mark };
test.each<[string, () => unknown, boolean]>([
  ["a password", () => webhookBasicAuth(short), true],
  [
    "one of several passwords",
    () => webhookBasicAuth({ credentials: [{ username, password }, short] }),
    true,
  ],
  ["a long password", () => webhookBasicAuth({ username, password }), false],
  ["whatever a function admits", () => webhookBasicAuth({ verify: () => true }), false],
  ["a secret", () => webhookHmac({ secret: mark }), true],
  ["one of several secrets", () => webhookHmac({ secrets: [secret, mark] }), true],
  ["a secret whose text is longer than its bytes", () => webhookHmac(inHex), true],
  ["a long secret", () => webhookHmac({ secret }), false],
  ["whatever a function gives", () => webhookHmac({ secrets: () => [mark] }), false],
])("of %s it is shown whether it is short", (_name, build, isShort) => {
  expect(JSON.stringify(shownBy(build)).includes('{"short":true}')).toBe(isShort);
});
