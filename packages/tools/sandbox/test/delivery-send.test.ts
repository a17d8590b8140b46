import { afterEach, describe, expect, test } from "@jest/globals";
import { sendWebhook } from "../src/index.ts";
import type { WebhookOptions } from "../src/delivery/send-webhook.ts";
import { buildWebhookRequest } from "../src/delivery/webhook-request.ts";
import { credentials, DeliveryBench } from "./delivery-bench.ts";

const bench = new DeliveryBench();
afterEach(() => bench.close());

const knownBody = Buffer.from(
  '{"webhook_id":"wh_1","timestamp":"2024-01-02T03:04:05.123456789Z","events":[{"event_id":"ev_1",' +
    '"timestamp":"2024-01-02T03:04:05.1Z","type":"buyer.status_changed","data":{"amount":"10.10"}}]}',
);

function webhook(url: string, changes: Partial<WebhookOptions> = {}): WebhookOptions {
  return { url, ...credentials, body: knownBody, allowHttp: true, ...changes };
}

describe("sendWebhook", () => {
  test("sends the bytes, the credentials and the signature", async () => {
    const receiver = await bench.receiver();
    const body = Buffer.from(' { "not": "touched",\r\n"n": 1.10 }\n');
    const answer = await sendWebhook(webhook(receiver.url, { body, username: "sérvice", password: "p:ä" }));
    expect(answer).toEqual({ status: 200, durationMs: expect.any(Number) });
    const [got] = receiver.received;
    expect(got).toMatchObject({
      method: "POST",
      target: "/hooks/a%2Fb?x=1",
      contentType: "application/json",
      credentials: "sérvice:p:ä",
      body,
    });
    expect(got?.signedBy("test-secret")).toBe(true);
    expect(got?.signedBy("another-secret")).toBe(false);
  });

  test("signs the known answer", () => {
    const { headers } = buildWebhookRequest(webhook("https://h/"));
    expect(knownBody).toHaveLength(190);
    expect(headers["X-Payload-Signature"]).toBe("vajd4eF7ymePHdf08eWE3L5VMvPqPC1ttZ5xBdvBIu4=");
  });

  test("names the header as it is told", () => {
    const { headers } = buildWebhookRequest(webhook("https://h/", { header: "X-Other" }));
    expect(Object.keys(headers)).toEqual(["Content-Type", "Authorization", "X-Other"]);
  });

  test("follows no redirect", async () => {
    const target = await bench.receiver();
    const receiver = await bench.receiver((_webhook, _index, res) => {
      res.writeHead(307, { location: target.url }).end();
      return undefined;
    });
    expect(await sendWebhook(webhook(receiver.url))).toMatchObject({ status: 307 });
    expect(target.received).toEqual([]);
  });

  test("gives up after the time-out", async () => {
    const receiver = await bench.receiver(() => undefined);
    const answer = await sendWebhook(webhook(receiver.url, { timeoutMs: 30 }));
    expect(answer).toEqual({ error: "timed-out", durationMs: expect.any(Number) });
  });

  test("loses a dropped answer although the receiver gave one", async () => {
    const receiver = await bench.receiver();
    const answer = await sendWebhook(webhook(receiver.url, { dropAnswer: true }));
    expect(answer).toMatchObject({ error: "connection-lost" });
    expect(receiver.received).toHaveLength(1);
  });

  test("is cut off by its signal", async () => {
    const controller = new AbortController();
    const receiver = await bench.receiver(() => {
      controller.abort();
      return undefined;
    });
    const answer = await sendWebhook(webhook(receiver.url, { signal: controller.signal }));
    expect(answer).toMatchObject({ error: "connection-failed" });
  });

  test.each<[string, Partial<WebhookOptions>, RegExp]>([
    ["plain http", { allowHttp: false }, /must be https/],
    ["plain http by default", { allowHttp: undefined }, /must be https/],
    ["plain http elsewhere", { url: "http://h/", allowHttp: "loopback" }, /must be https/],
    [
      "plain http to what looks like loopback",
      { url: "http://127.h/", allowHttp: "loopback" },
      /must be https/,
    ],
    ["another scheme", { url: "ftp://h/" }, /the URL must be/],
    ["credentials in the URL", { url: "https://a:b@h/" }, /without credentials/],
    ["an empty username", { username: "" }, /username must not be empty/],
    ["a colon in the username", { username: "a:b" }, /username must not hold a colon/],
    ["an empty password", { password: "" }, /password must not be empty/],
    ["a line break in the password", { password: "test\r\nX: y" }, /password must not hold control/],
    ["an empty secret", { secret: "" }, /secret must not be empty/],
    ["a NUL in the secret", { secret: "test\u0000" }, /secret must not hold control/],
  ])("refuses %s and shows no credential", async (_name, changes, message) => {
    const error: unknown = await sendWebhook(webhook("http://127.0.0.1:1/", changes)).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(TypeError);
    expect(String(error)).toMatch(message);
    expect(String(error)).not.toContain("test");
  });
});
