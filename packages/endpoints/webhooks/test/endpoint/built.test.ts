import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { expect, test } from "@jest/globals";
import { builtChannelName, type Built } from "@countersign/core";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { createWebhookHandler, webhookEndpoint, type WebhookEndpointOptions } from "@countersign/webhooks";

const store = memoryIdempotencyStore({ retentionMs: 30 * 86_400_000 });
const handler = createWebhookHandler({ store, fallback: () => {} });

/** What was built, by its name. */
function builtBy(options: Omit<WebhookEndpointOptions, "handler">): ReadonlyMap<string, Built> {
  const built = new Map<string, Built>();
  const hear = (message: unknown): void => void built.set((message as Built).built, message as Built);
  subscribe(builtChannelName, hear);
  webhookEndpoint({ ...options, handler });
  unsubscribe(builtChannelName, hear);
  return built;
}

// TEST VALUES.
const password = "test-password-of-the-webhook";
const secret = "test-secret-of-the-webhook";

test("webhookEndpoint tells on countersign:built what it was built with, and no secret", () => {
  const built = builtBy({ basicAuth: { username: "service", password }, hmac: { secret } });
  const factory = "webhookEndpoint";
  expect([...built.values()]).toEqual([
    { built: factory, factory, facts: { addresses: false, allowsHttp: false } },
    { built: "webhookBasicAuth", factory, facts: { credentials: 1, short: false } },
    { built: "webhookHmac", factory, facts: { header: "x-payload-signature", secrets: 1, short: false } },
  ]);
  expect(JSON.stringify([...built.values()])).not.toMatch(/test-|"service"/);
});

test("webhookEndpoint tells which credentials are short, how many there are, and which it asks for", () => {
  const short = builtBy({
    basicAuth: {
      credentials: [
        { username: "a", password },
        { username: "b", password: "short" },
      ],
    },
    hmac: { secrets: [secret, "short"] },
    https: { dangerouslyAllowHttp: true },
    addresses: { allow: ["192.0.2.1"] },
  });
  expect(short.get("webhookEndpoint")?.facts).toEqual({ addresses: true, allowsHttp: true });
  expect(short.get("webhookBasicAuth")?.facts).toEqual({ credentials: 2, short: true });
  expect(short.get("webhookHmac")?.facts).toMatchObject({ secrets: 2, short: true });
  const asked = builtBy({ basicAuth: { verify: () => true }, hmac: { secrets: () => [secret] } });
  expect(asked.get("webhookBasicAuth")?.facts).toEqual({ credentials: null, short: false });
  expect(asked.get("webhookHmac")?.facts).toMatchObject({ secrets: null, short: false });
});
