import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { ServiceClientError } from "countersign/client";
import {
  apiKey,
  clientOf,
  endpoint,
  failureOf,
  json,
  startService,
  text,
  type Answerer,
  type TestService,
} from "./service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

const { authUsername, authPassword, signatureSecret } = endpoint;
const basic = Buffer.from(`${authUsername}:${authPassword}`).toString("base64");
const spellings = [apiKey, authPassword, signatureSecret].flatMap((secret) => [
  secret,
  JSON.stringify(secret).slice(1, -1),
  encodeURIComponent(secret),
  secret.replaceAll("/", "\\/"),
]);

/** Everything that a log could show of a value. */
function shown(value: unknown): string {
  return [
    inspect(value, { depth: Infinity, showHidden: true, getters: true }),
    JSON.stringify(value),
    String(value),
    value instanceof Error ? value.stack : "",
  ].join("\n");
}

function expectNothingSecret(output: string): void {
  for (const spelling of [...spellings, basic]) expect(output).not.toContain(spelling);
}

describe("what is secret is not shown", () => {
  test("by the client", () => {
    expectNothingSecret(shown(clientOf(service.baseUrl)));
  });

  const echo: Answerer = (res, request) => {
    res.writeHead(400).end(`${JSON.stringify(request.headers)} ${request.body}`);
  };
  test.each<[string, Answerer]>([
    ["the whole request", echo],
    ["JSON with escaped slashes", text(400, JSON.stringify(endpoint).replaceAll("/", "\\/"))],
    ["JSON in ASCII", text(400, asciiJson({ ...endpoint, apiKey }))],
    [
      "a URI",
      text(400, new URLSearchParams({ ok: "1" }).toString() + spellings.map(encodeURIComponent).join("&")),
    ],
    ["basic authentication", text(400, `Basic ${basic}`)],
    ["a page that is no error", text(200, `<p>${apiKey} ${authPassword} ${signatureSecret}`)],
    ["a redirect", text(302, apiKey, { location: `https://${apiKey}.example` })],
    ["an outage", json(503, { apiKey, authPassword, signatureSecret })],
  ])("by the error of an answer that repeats %s", async (_name, answerer) => {
    service.answer(answerer);
    const error = await failureOf(clientOf(service.baseUrl, { retries: 0 }).createWebhookEndpoint(endpoint));
    expectNothingSecret(shown(error));
    expect(error.body).toContain("[redacted]");
  });

  test("by half a secret where the body is cut", async () => {
    // Redacted, 6 secrets of 11,000 characters leave so little that the cut itself is within the part that is kept.
    const long = { ...endpoint, signatureSecret: `begin-${"s".repeat(10_988)}-end!!` };
    service.answer(text(400, `${long.signatureSecret} `.repeat(10)));
    const error = await failureOf(clientOf(service.baseUrl).createWebhookEndpoint(long));
    expect(error.status).toBe(400);
    expect(shown(error)).not.toContain("sss");
  });

  test.each<[string, () => unknown]>([
    [
      "header fields",
      () => Object.assign(new Error(`failed with ${apiKey}`), { request: { apiKey, authPassword } }),
    ],
    ["a cause", () => new TypeError("fetch failed", { cause: new Error(`${signatureSecret} ${apiKey}`) })],
    ["text", () => `failed with ${apiKey}`],
    ["a code", () => ({ code: apiKey })],
    ["nothing", () => undefined],
  ])("by the error of a fetch that throws %s", async (_name, thrown) => {
    const client = clientOf(service.baseUrl, { retries: 0, fetch: () => Promise.reject(thrown()) });
    const error: ServiceClientError = await failureOf(client.createWebhookEndpoint(endpoint));
    expect(error).toMatchObject({ code: "network", message: expect.stringContaining("(no code)") });
    expectNothingSecret(shown(error));
  });

  test("by the error of a real failure of the network", async () => {
    service.answer((res) => res.socket?.end(`${apiKey} is no HTTP\r\n\r\n`));
    const error = await failureOf(clientOf(service.baseUrl, { retries: 0 }).createWebhookEndpoint(endpoint));
    expect(error.code).toBe("network");
    expectNothingSecret(shown(error));
  });
});

function asciiJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
