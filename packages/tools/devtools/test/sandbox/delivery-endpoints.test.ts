import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, test } from "@jest/globals";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { sendWebhook } from "../../src/sandbox/index.ts";
import type { SandboxOptions } from "../../src/sandbox/service/options.ts";
import { bench, event, registration, idsOf, credentials } from "./delivery-bench.ts";
import { selfSignedCertificate } from "@countersign/test-support/servers/certificates.ts";
import type { WebhookOptions } from "../../src/sandbox/delivery/send-webhook.ts";
import { buildWebhookRequest } from "../../src/sandbox/delivery/webhook-request.ts";

const quick = {
  initialDelayMs: 5,
  maxDelayMs: 10,
  stopWaitMs: 1000,
} as const satisfies SandboxOptions["delivery"];

// The first answers wait until a hundred requests are under way.
const hundredAtOnce = `
  import { once } from "node:events";
  import { createServer } from "node:http";
  const { startSandbox } = await import(process.argv[1]);
  const waiting = [];
  const receiver = createServer((req, res) => {
    if (waiting.push(res) < 100) return;
    for (const each of waiting) each.end();
  });
  await once(receiver.listen(0, "127.0.0.1"), "listening");
  const { deliveries, close } = await startSandbox({
    apiKey: "key", allowHttp: "loopback", delivery: { concurrency: 100 },
  });
  const url = "http://127.0.0.1:" + receiver.address().port + "/hooks";
  const credentials = { username: "service", password: "password", secret: "secret" };
  deliveries.addEndpoint({ url, ...credentials, allowHttp: "loopback" });
  for (let index = 0; index < 100; index += 1) deliveries.notify([{ type: "test.event", data: {} }]);
  await deliveries.idle();
  await close();
  receiver.close();
  process.stdout.write(waiting.length + " at once");
`;

describe("endpoints", () => {
  test("each gets every notification with its own credentials", async () => {
    const [first, second] = [await bench.receiver(), await bench.receiver()];
    const service = bench.service({ options: quick });
    const other = { username: "other", password: "other-password", secret: "other-secret" };
    service.addEndpoint(registration(first.url));
    service.addEndpoint(registration(second.url, other));
    service.start();
    service.notify([event("e1"), event("e2")]);
    await service.idle();
    expect(idsOf(first.received)).toEqual(["e1+e2"]);
    expect(second.received[0]?.body).toEqual(first.received[0]?.body);
    expect(first.received[0]?.credentials).toBe("service:test-password");
    expect(second.received[0]?.credentials).toBe("other:other-password");
    expect(first.received[0]?.signedBy("test-secret")).toBe(true);
    expect(second.received[0]?.signedBy("other-secret")).toBe(true);
  });

  test("get nothing of what happened before them", async () => {
    const receiver = await bench.receiver();
    const service = bench.service();
    service.start();
    service.notify([event("before")]);
    service.addEndpoint(registration(receiver.url));
    service.notify([event("after")]);
    await service.idle();
    expect(idsOf(receiver.received)).toEqual(["after"]);
  });

  test("that are slow or refuse hold up no other endpoint and no other webhook", async () => {
    let release = (): void => {};
    const hanging = new Promise<void>((resolve) => (release = resolve));
    const slow = await bench.receiver(async ({ eventIds }) => {
      if (eventIds.includes("stuck")) await hanging;
      return 200;
    });
    const good = await bench.receiver();
    const refusing = await bench.receiver(({ eventIds }) => (eventIds.includes("stuck") ? 500 : 200));
    const service = bench.service({
      options: { ...quick, concurrency: 2, initialDelayMs: 60_000, maxDelayMs: 60_000 },
    });
    for (const { url } of [slow, good, refusing]) service.addEndpoint(registration(url));
    service.start();
    const ids = ["stuck", "e1", "e2", "e3", "e4"];
    for (const id of ids) service.notify([event(id)]);
    const all = [slow, good, refusing];
    await eventually(() => all.every(({ received }) => received.length >= ids.length));
    expect(service.list({ eventId: "stuck" }).map(({ state }) => state)).toEqual([
      "pending",
      "delivered",
      "pending",
    ]);
    release();
  });

  test("are reached by https with the issuer in ca", async () => {
    const tls = selfSignedCertificate();
    const receiver = await bench.receiver(undefined, tls);
    const states = await Promise.all(
      [tls.cert, undefined].map(async (ca) => {
        const service = bench.service({ ca, options: { ...quick, retryForMs: 0 } });
        service.addEndpoint(registration(receiver.url, { allowHttp: false }));
        service.start();
        service.notify([event("e1")]);
        await service.idle();
        return service.list()[0];
      }),
    );
    expect(states).toMatchObject([
      { state: "delivered", attempts: [{ status: 200 }] },
      { state: "failed", attempts: [{ error: "certificate-rejected" }] },
    ]);
  });

  test.each([
    [200, "delivered"],
    [201, "delivered"],
    [299, "delivered"],
    [300, "failed"],
    [308, "failed"],
    [404, "failed"],
    [503, "failed"],
  ])("that answer %d leave a webhook %s", async (status, state) => {
    const receiver = await bench.receiver(() => status);
    const service = bench.started(receiver, { options: { ...quick, retryForMs: 0 } });
    service.notify([event("e1")]);
    await service.idle();
    expect(service.list()).toMatchObject([{ state, attempts: [{ status }] }]);
  });

  test("get at most so many requests at the same time", async () => {
    const open: Array<(status: number) => void> = [];
    const receiver = await bench.receiver(
      () =>
        new Promise((resolve) => {
          // None is answered before three are there, and a fourth would have had time to come.
          if (open.push(resolve) % 3 === 0)
            setTimeout(() => open.splice(0).forEach((answer) => answer(200)), 5);
        }),
    );
    const service = bench.started(receiver, { options: { ...quick, concurrency: 3 } });
    for (let index = 0; index < 12; index += 1) service.notify([event(`e${index}`)]);
    await service.idle();
    expect(receiver.received).toHaveLength(12);
    expect(receiver.mostAtOnce()).toBe(3);
  });

  test("that take a hundred requests at the same time cause no warning", async () => {
    // Node warns its own process alone, which is not this one's `process`.
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [
      "--input-type=module",
      "--eval",
      hundredAtOnce,
      new URL("../../dist/sandbox/index.js", import.meta.url).href,
    ]);
    expect({ stdout, stderr }).toEqual({ stdout: "100 at once", stderr: "" });
  });
});

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

  test("follows no redirect", async () => {
    const target = await bench.receiver();
    const receiver = await bench.receiver((_webhook, _index, res) => {
      res.writeHead(307, { location: target.url }).end();
      return undefined;
    });
    expect(await sendWebhook(webhook(receiver.url))).toMatchObject({ status: 307 });
    expect(target.received).toEqual([]);
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

  // A page shows the words at the field that they begin with, else at the URL.
  test.each<[string, Partial<WebhookOptions>, RegExp]>([
    ["plain http", { allowHttp: false }, /^the URL must be https/],
    ["plain http by default", { allowHttp: undefined }, /^the URL must be https/],
    ["plain http elsewhere", { url: "http://h/", allowHttp: "loopback" }, /^the URL must be https/],
    [
      "plain http to what looks like loopback",
      { url: "http://127.h/", allowHttp: "loopback" },
      /^the URL must be https/,
    ],
    ["a URL without a host", { url: "http:///hooks" }, /^the URL must be/],
    ["another scheme", { url: "ftp://h/" }, /^the URL must be/],
    ["credentials in the URL", { url: "https://a:b@h/" }, /^the URL .* without credentials/],
    ["an empty username", { username: "" }, /^username is empty/],
    ["a colon in the username", { username: "a:b" }, /^username holds a colon/],
    ["an empty password", { password: "" }, /^password is empty/],
    ["a line break in the password", { password: "test\r\nX: y" }, /^password holds a control/],
    ["an empty secret", { secret: "" }, /^secret is empty/],
    ["a NUL in the secret", { secret: "test\u0000" }, /^secret holds a control/],
  ])("refuses %s and shows no credential", async (_name, changes, message) => {
    const sent = sendWebhook(webhook("http://127.0.0.1:1/", changes));
    await expect(sent).rejects.toThrow(TypeError);
    await expect(sent).rejects.toThrow(message);
    await expect(sent).rejects.not.toThrow("test");
  });
});
