import { guardErrors } from "@countersign/express";
import { webhookBasicAuth } from "@countersign/webhook-basic-auth";
import { webhookHmac } from "@countersign/webhook-hmac";
import { receiveWebhook, type WebhookHandler } from "countersign/webhooks";
import { describe, expect, test } from "@jest/globals";
import type { Express } from "express";
import { exchange, withServer } from "@countersign/test-support/servers/wire.ts";
import {
  credentials,
  delivery,
  handlerOf,
  path,
  rejections,
  secret,
  success,
  type WebhookChanges,
  expressVersions,
} from "./endpoint.ts";

describe.each(expressVersions)("receiveWebhook on %s", (_version, factory) => {
  function appWith(
    handler: WebhookHandler,
    { verify = true }: { readonly verify?: boolean } = {},
  ): { readonly app: Express; readonly codes: unknown[] } {
    const { codes, onReject } = rejections();
    const app = factory();
    const guards = verify ? [webhookBasicAuth({ credentials }), webhookHmac({ secret })] : [];
    app.all(path, ...guards, receiveWebhook(handler));
    app.use(guardErrors({ onReject }));
    return { app, codes };
  }

  async function answerOf(app: Express, changes: WebhookChanges = {}): Promise<string> {
    return withServer(app, (port) => exchange(port, delivery(changes)));
  }

  test("handles what webhookHmac has verified", async () => {
    const seen: string[] = [];
    const { app } = appWith(handlerOf(({ event_id }) => seen.push(event_id)));
    expect(await answerOf(app)).toBe(success);
    expect(seen).toEqual(["ev_1"]);
  });

  test("refuses with 500 to handle what nobody verified", async () => {
    const seen: string[] = [];
    const { app, codes } = appWith(
      handlerOf(({ event_id }) => seen.push(event_id)),
      { verify: false },
    );
    expect(await answerOf(app)).toMatch(/^HTTP\/1.1 500 /);
    expect(codes).toEqual(["payload-not-verified"]);
    expect(seen).toEqual([]);
  });

  test.each<[string, number, string, WebhookChanges]>([
    ["another method", 405, "method-not-allowed", { method: "PATCH" }],
    ["another media type", 415, "media-type-unsupported", { headers: { "Content-Type": "text/plain" } }],
    [
      "two media types",
      415,
      "media-type-unsupported",
      { headers: { "Content-Type": ["application/json", "text/plain"] } },
    ],
    ["no envelope", 400, "envelope-invalid", { body: "[]" }],
  ])("refuses %s", async (_name, status, code, changes) => {
    const { app, codes } = appWith(handlerOf());
    expect(await answerOf(app, changes)).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(codes).toEqual([code]);
  });

  test("hands on what a broken handler object throws", async () => {
    const thrown = new Error("broken");
    const broken: WebhookHandler = {
      on: () => broken,
      onOther: () => broken,
      onAny: () => broken,
      drain: () => Promise.resolve({ keys: 0, claims: 0 }),
      handle: () => {
        throw thrown;
      },
    };
    const { app } = appWith(broken);
    const errors: unknown[] = [];
    app.use((error: unknown, _req: unknown, res: { end(): void }, _next: unknown) => {
      errors.push(error);
      res.end();
    });
    await answerOf(app);
    expect(errors).toEqual([thrown]);
  });
});

describe("receiveWebhook", () => {
  test.each([undefined, null, {}, () => undefined, { handle: () => undefined }])("refuses %p", (handler) => {
    expect(() => receiveWebhook(handler as never)).toThrow(
      /^receiveWebhook: option handler must be what createWebhookHandler\(\) returned/,
    );
  });

  test("is named receiveWebhookMiddleware", () => {
    expect(receiveWebhook(handlerOf()).name).toBe("receiveWebhookMiddleware");
  });
});
