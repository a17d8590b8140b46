// What the adapter adds; every status of a webhook runs through it in test/adapters.
import type { GuardError } from "@countersign/core";
import { webhookRoute } from "@countersign/fetch";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { createWebhookHandler } from "countersign/webhooks";
import { describe, expect, test } from "@jest/globals";
import { basic, deliver, envelope, rightUser, secret } from "../../../../test/adapters/webhook-scene.ts";
import { expectWarning } from "@countersign/test-support/runs/expect-warning.ts";

type WebhookRouteOptions = Parameters<typeof webhookRoute>[0];

const [username = "", password = ""] = rightUser.split(":");

function hookOf(overrides: Partial<WebhookRouteOptions> = {}) {
  const handled: string[] = [];
  const codes: unknown[] = [];
  const store = memoryIdempotencyStore();
  const handler = createWebhookHandler({ store, fallback: (event) => void handled.push(event.event_id) });
  const route = webhookRoute({
    basicAuth: { username, password },
    hmac: { secret },
    handler,
    onReject: (error) => void codes.push((error as GuardError).code),
    ...overrides,
  });
  return { route, handled, codes };
}

function delivery(changes: Readonly<Record<string, string>> = {}): Request {
  const { method, path, headers, body } = deliver(envelope(), changes);
  const pairs = Array.from({ length: headers.length / 2 }, (_, at): [string, string] => [
    String(headers[2 * at]),
    String(headers[2 * at + 1]),
  ]);
  return new Request(`https://platform.example${path}`, {
    method,
    headers: pairs,
    body: Buffer.from(body ?? ""),
  });
}

const wrongUser = { Authorization: basic("service:wrong") };

describe("webhookRoute", () => {
  test("hides it behind the answer of the app to an unknown route", async () => {
    const hide = (request: Request): Response =>
      new Response(`no ${new URL(request.url).pathname}`, { status: 404 });
    const answer = await hookOf({ hide }).route(delivery(wrongUser));
    expect(await answer.text()).toMatch(/^no \/hooks\//);
  });

  test("answers it as such with hide: false", async () => {
    const answer = await hookOf({ hide: false }).route(delivery(wrongUser));
    expect([answer.status, answer.headers.get("content-type")]).toEqual([401, "application/problem+json"]);
  });

  // An app's error handler that answers 200 would acknowledge what nobody has handled.
  test("answers 500 itself where hide fails", async () => {
    const hide = (): never => {
      throw new Error("the app failed");
    };
    const { route, handled } = hookOf({ hide });
    expect([(await route(delivery(wrongUser))).status, handled]).toEqual([500, []]);
    expectWarning(/webhookEndpoint could not answer a refusal: Error: "the app failed"/);
  });

  test.each([undefined, null, "no such page", {}])("answers 500 where hide gives %p", async (given) => {
    const answer = await hookOf({ hide: () => given as never }).route(delivery(wrongUser));
    expect([answer instanceof Response, answer.status]).toEqual([true, 500]);
    expectWarning(/could not answer a refusal: TypeError: "option hide must return a Response"/);
  });
});
