// What `countersign payout --tamper` and `webhook --tamper` send is refused by every adapter, with the code of the mistake.
import { buildPayoutRequest, buildWebhookRequest } from "@countersign/devtools/sandbox";
import { payoutPlans, tamperedWebhookTexts } from "@countersign/devtools/internal";
import { describe, expect, test } from "@jest/globals";
import express5 from "express";
import express4 from "express4";
import type { WireRequest } from "../support/servers/http-client.ts";
import { serviceKey } from "../support/signers/test-keys.ts";
import { expressAdapter } from "./express-adapter.ts";
import { fastifyAdapter } from "./fastify-adapter.ts";
import { fetchAdapter } from "./fetch-adapter.ts";
import { fetchBehindNode } from "./fetch-behind-node.ts";
import { honoAdapter } from "./hono-adapter.ts";
import { nodeAdapter } from "./node-adapter.ts";
import { payoutScene, payoutText } from "./payout-scene.ts";
import type { Adapter, Scene } from "./scene.ts";
import { envelope, secret, webhookScene } from "./webhook-scene.ts";

const adapters = [
  expressAdapter("express 5", express5),
  expressAdapter("express 4", express4),
  nodeAdapter,
  fastifyAdapter,
  fetchAdapter,
  fetchBehindNode,
  honoAdapter,
];

type Sent = ReturnType<typeof buildWebhookRequest>;

async function refusal(adapter: Adapter, scene: Scene, sent: Sent) {
  const { method, target: path, headers, bodyBytes: body } = sent;
  const wire: WireRequest = { method, path, headers: Object.entries(headers).flat(), body };
  const { send, close } = await adapter.open(scene);
  try {
    const { status } = await send(wire);
    return { status, codes: scene.trace.codes, ran: scene.trace.ran };
  } finally {
    await close();
  }
}

const payoutCodes: Readonly<Record<string, string>> = {
  body: "content-digest-mismatch",
  digest: "signature-mismatch",
  signature: "signature-mismatch",
  path: "signature-mismatch",
  "prefix-removed": "signature-mismatch",
  "prefix-added": "signature-mismatch",
  "charset-added": "signature-mismatch",
  "body-re-serialised": "content-digest-mismatch",
  "created-milliseconds": "window-too-long",
};
const parts = payoutPlans.variants.flatMap(({ value }) => value ?? []);

const webhookCodes: Readonly<Record<keyof typeof tamperedWebhookTexts, string>> = {
  body: "payload-signature-wrong",
  signature: "payload-signature-wrong",
  password: "credentials-wrong",
  "body-re-serialised": "payload-signature-wrong",
};
const webhookParts = ["body", "signature", "password", "body-re-serialised"] as const;

describe.each(adapters)("the adapter $name", (adapter) => {
  test.each(parts)("refuses a payout with the tampered part %s", async (tamper) => {
    const scene = payoutScene()();
    const sent = buildPayoutRequest({
      url: `http://127.0.0.1${scene.path}`,
      bodyText: payoutText,
      privateKey: serviceKey,
      keyid: "test-key",
      tamper,
    });
    expect(await refusal(adapter, scene, sent)).toEqual({
      status: 401,
      codes: [payoutCodes[tamper]],
      ran: 0,
    });
  });

  test.each(webhookParts)("refuses a webhook with the tampered part %s", async (tamper) => {
    const scene = webhookScene(true)();
    const sent = buildWebhookRequest({
      url: `http://127.0.0.1${scene.path}`,
      allowHttp: true,
      username: "service",
      password: "test-password",
      secret,
      body: Buffer.from(envelope()),
      tamper,
    });
    expect(await refusal(adapter, scene, sent)).toEqual({
      status: 404,
      codes: [webhookCodes[tamper]],
      ran: 0,
    });
  });
});

test("every value of --tamper has its code", () => {
  expect(Object.keys(payoutCodes)).toEqual(parts);
  expect(Object.keys(tamperedWebhookTexts)).toEqual(webhookParts);
});
