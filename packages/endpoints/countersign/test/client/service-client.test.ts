import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createServiceClient } from "countersign/client";
import {
  apiKey,
  clientOf,
  endpoint,
  failureOf,
  json,
  startService,
  text,
  type TestService,
} from "./service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

describe("createWebhookEndpoint", () => {
  test("posts the request of the spec", async () => {
    service.answer(json(201, { id: "endpoint-1", url: endpoint.url }));
    const answer = await clientOf(service.baseUrl).createWebhookEndpoint(endpoint);
    expect(answer).toEqual({ status: 201, body: { id: "endpoint-1", url: endpoint.url } });
    const [request, ...others] = service.received;
    expect(others).toEqual([]);
    expect(request).toMatchObject({
      method: "POST",
      target: "/api/v2/b2b-payments/webhook-endpoints",
      headers: { accept: "application/json", "content-type": "application/json", "x-api-key": apiKey },
    });
    expect(JSON.parse(request?.body ?? "")).toEqual({
      url: endpoint.url,
      auth_username: endpoint.authUsername,
      auth_password: endpoint.authPassword,
      signature_secret: endpoint.signatureSecret,
    });
  });

  test.each([
    ["", "/api/v2/b2b-payments/webhook-endpoints"],
    ["/", "/api/v2/b2b-payments/webhook-endpoints"],
    ["/lending", "/lending/api/v2/b2b-payments/webhook-endpoints"],
    ["/lending/eu/", "/lending/eu/api/v2/b2b-payments/webhook-endpoints"],
    ["/l%C3%A9nding", "/l%C3%A9nding/api/v2/b2b-payments/webhook-endpoints"],
  ])("appends to the base path %p", async (path, target) => {
    service.answer(json(201, {}));
    await clientOf(`${service.baseUrl}${path}`).createWebhookEndpoint(endpoint);
    expect(service.received.map((request) => request.target)).toEqual([target]);
  });

  test.each([
    ["201 with JSON", json(201, { id: 1 }), { status: 201, body: { id: 1 } }],
    ["200 with a JSON text", json(200, "ok"), { status: 200, body: "ok" }],
    ["202 without a body", text(202, ""), { status: 202, body: undefined }],
    ["204", text(204, ""), { status: 204, body: undefined }],
    [
      "a body of exactly 64 KiB",
      text(200, `"${"x".repeat(65_534)}"`),
      { status: 200, body: "x".repeat(65_534) },
    ],
  ])("takes %s for a success", async (_name, answerer, expected) => {
    service.answer(answerer);
    expect(await clientOf(service.baseUrl).createWebhookEndpoint(endpoint)).toEqual(expected);
  });

  test.each([
    ["a page", text(200, "<html>welcome</html>", { "content-type": "text/html" }), "<html>welcome</html>"],
    ["half of JSON", text(201, '{"id":'), '{"id":'],
    ["JSON that is no UTF-8", text(201, Buffer.from([0x22, 0xff, 0x22])), '"\uFFFD"'],
    ["JSON and white space up to 64 KiB and beyond", text(201, "1".padEnd(65_537)), "1".padEnd(4096)],
    ["more than 64 KiB", text(201, `"${"x".repeat(65_535)}"`), `"${"x".repeat(4095)}`],
  ])("refuses a 2xx with %s, once", async (_name, answerer, body) => {
    service.answer(answerer);
    const error = await failureOf(clientOf(service.baseUrl).createWebhookEndpoint(endpoint));
    expect(error).toMatchObject({ code: "invalid-response", body });
    expect([200, 201]).toContain(error.status);
    expect(service.received).toHaveLength(1);
  });

  test("stops reading an answer without end at 64 KiB", async () => {
    let written = 0;
    service.answer((res) => {
      const chunk = Buffer.alloc(16_384, "x");
      const write = (): void => {
        if (res.destroyed || res.closed) return;
        written += chunk.length;
        res.write(chunk, () => setImmediate(write));
      };
      write();
    });
    const error = await failureOf(clientOf(service.baseUrl).createWebhookEndpoint(endpoint));
    expect(error).toMatchObject({ code: "invalid-response", status: 200, body: "x".repeat(4096) });
    expect(written).toBeLessThan(64 * 1024 * 1024);
  });

  test.each([
    [400, { detail: "url is taken" }],
    [401, { detail: "who are you" }],
    [403, {}],
    [404, {}],
    [422, []],
    [499, null],
  ])("rejects with the status %p and its body, once", async (status, body) => {
    service.answer(json(status, body));
    const error = await failureOf(clientOf(service.baseUrl).createWebhookEndpoint(endpoint));
    expect(error).toMatchObject({
      name: "ServiceClientError",
      code: "rejected",
      status,
      body: JSON.stringify(body),
    });
    expect(service.received).toHaveLength(1);
  });

  test.each([300, 301, 302, 303, 304, 307, 308])("follows no redirect with status %p", async (status) => {
    const elsewhere = await startService();
    try {
      service.answer(text(status, "", { location: `${elsewhere.baseUrl}/taken` }));
      const error = await failureOf(clientOf(service.baseUrl).createWebhookEndpoint(endpoint));
      expect(error).toMatchObject({ code: "redirect-refused", status });
      expect(service.received).toHaveLength(1);
      expect(elsewhere.received).toHaveLength(0);
    } finally {
      await elsewhere.close();
    }
  });

  test("calls the fetch that it is given", async () => {
    const calls: unknown[] = [];
    const client = createServiceClient({
      baseUrl: "https://service.example",
      apiKey,
      fetch: (url, { method, redirect, headers }) => {
        calls.push({ url, method, redirect, headers });
        return Promise.resolve(Response.json({ id: "endpoint-2" }, { status: 201 }));
      },
    });
    expect(await client.createWebhookEndpoint(endpoint)).toEqual({ status: 201, body: { id: "endpoint-2" } });
    expect(calls).toEqual([
      {
        url: "https://service.example/api/v2/b2b-payments/webhook-endpoints",
        method: "POST",
        redirect: "manual",
        headers: { Accept: "application/json", "Content-Type": "application/json", "X-API-KEY": apiKey },
      },
    ]);
  });

  test("takes the opaque redirect of a fetch for browsers for a redirect", async () => {
    const opaque = { status: 0, headers: new Headers(), body: null } as unknown as Response;
    const client = clientOf(service.baseUrl, { fetch: () => Promise.resolve(opaque) });
    expect(await failureOf(client.createWebhookEndpoint(endpoint))).toMatchObject({
      code: "redirect-refused",
      status: 0,
    });
  });
});
