import { METHODS, type Server } from "node:http";
import { signPayload } from "@countersign/webhook-hmac";
import type { webhookEndpoint } from "countersign/webhooks";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { close, listen } from "@countersign/test-support/servers/http-client.ts";
import { exchange, rawRequest, withServer } from "@countersign/test-support/servers/wire.ts";
import {
  basic,
  delivery,
  envelope,
  handlerOf,
  jsonNotFound,
  optionsWith,
  path,
  rejections,
  siteOf,
  success,
  type WebhookChanges,
  expressVersions,
} from "./endpoint.ts";
import type { Overrides } from "@countersign/test-support/runs/sections.ts";

type WebhookEndpointOptions = Parameters<typeof webhookEndpoint>[0];

const others = METHODS.filter((method) => method !== "CONNECT" && method !== "POST");
const oversize = `{"webhook_id":"${"a".repeat(2000)}"}`;
// More than the server has in hand when it sees that the body is too large.
const overflow = `{"webhook_id":"${"a".repeat(400_000)}"}`;
const signature = (body: string, secret = "test-secret"): string => signPayload(Buffer.from(body), secret);
const genuine = signature(envelope("ev_1"));

type Line = string | readonly string[] | undefined;

const signed = (line: Line): WebhookChanges => ({ headers: { "X-Payload-Signature": line } });
const authorized = (line: Line): WebhookChanges => ({ headers: { Authorization: line } });
const failing = handlerOf(() => Promise.reject(new Error("database down")));

/** The code is that of POST; every other method is refused for itself, at the latest. Further ways are rows of test/adapters. */
const stages: readonly (readonly [
  name: string,
  code: string,
  changes?: WebhookChanges | undefined,
  options?: Overrides<WebhookEndpointOptions> | undefined,
])[] = [
  ["no TLS", "https-required", undefined, { https: undefined }],
  ["an address that is not listed", "ip-not-allowed", undefined, { addresses: { allow: ["192.0.2.1"] } }],
  ["no password", "credentials-missing", authorized(undefined)],
  ["a wrong password", "credentials-wrong", authorized(basic("service", "wrong"))],
  ["another scheme", "credentials-malformed", authorized("Bearer abc")],
  ["no media type", "media-type-unsupported", { headers: { "Content-Type": undefined } }],
  ["no signature", "payload-signature-missing", signed(undefined)],
  ["two signatures", "payload-signature-malformed", signed([genuine, genuine])],
  ["another secret", "payload-signature-wrong", signed(signature(envelope("ev_1"), "test-secret-2"))],
  ["a body too large by Content-Length", "body-too-large", { body: oversize }],
  ["a body too large in chunks", "body-too-large", { body: overflow, chunked: true }],
  ["a content coding", "content-encoding-unsupported", { headers: { "Content-Encoding": "gzip" } }],
  ["an empty body", "json-empty", { body: "" }],
  ["malformed JSON", "json-invalid", { body: '{"events":' }],
  ["a key twice", "json-duplicate-key", { body: '{"a":1,"a":2}' }],
  ["a bad envelope", "envelope-invalid", { body: '{"webhook_id":"wh_1"}' }],
  ["a failing handler", "events-failed", undefined, { handler: failing }],
];

/** A server for each stage, and one without the endpoint, for as long as the tests of one site run. */
function servers(site: Parameters<typeof siteOf>[0]): {
  readonly portOf: (name: string) => number;
  readonly codesOf: (name: string) => unknown[];
} {
  const running = new Map<
    string,
    { readonly server: Server; readonly port: number; readonly codes: unknown[] }
  >();
  beforeAll(async () => {
    running.set("without", { ...(await listen(siteOf(site))), codes: [] });
    for (const [name, , , options] of stages) {
      const { codes, onReject } = rejections();
      running.set(name, { ...(await listen(siteOf(site, optionsWith({ ...options, onReject })))), codes });
    }
  });
  afterAll(async () => {
    for (const { server } of running.values()) await close(server);
  });
  return {
    portOf: (name) => running.get(name)?.port ?? 0,
    codesOf: (name) => running.get(name)?.codes ?? [],
  };
}

describe.each(expressVersions)("webhookEndpoint hidden on %s", (_version, factory) => {
  describe.each([
    ["the default 404 page", undefined],
    ["a custom 404 handler", jsonNotFound],
  ])("with %s", (_page, notFound) => {
    const { portOf, codesOf } = servers({ factory, notFound });
    const unknown = new Map<string, string>();

    beforeAll(async () => {
      for (const method of ["POST", ...others]) {
        unknown.set(method, await exchange(portOf("without"), rawRequest(method, path)));
      }
    });

    test("compares with a 404", () => {
      for (const answer of unknown.values()) expect(answer).toMatch(/^HTTP\/1.1 404 Not Found\r\n/);
    });

    test.each(stages)("answers %s as an unknown route, by every method", async (name, code, changes) => {
      codesOf(name).length = 0;
      // The delivery itself comes last, so that the last code is its own.
      for (const group of [others, ["POST"]]) {
        await Promise.all(
          group.map(async (method) => {
            const hidden = await exchange(portOf(name), delivery({ ...changes, method }));
            expect(hidden).toBe(unknown.get(method));
          }),
        );
      }
      // Each request was refused, once, and the delivery by its own stage.
      expect(codesOf(name)).toHaveLength(others.length + 1);
      expect(codesOf(name).at(-1)).toBe(code);
    });

    test.each(stages)(
      "leaves the connection behind %s as an unknown route does",
      async (name, _code, changes) => {
        const requests = Buffer.concat([
          delivery({ ...changes, keepAlive: true }),
          Buffer.from(rawRequest("GET", "/")),
        ]);
        const hidden = await exchange(portOf(name), requests);
        expect(hidden).toBe(await exchange(portOf("without"), requests));
        expect(hidden).toMatch(/\r\n\r\nhome$/);
      },
    );
  });

  test("answers a webhook whose events are busy as an unknown route", async () => {
    let finish = (): void => undefined;
    let begun = (): void => undefined;
    const started = new Promise<void>((resolve) => (begun = resolve));
    const work = (): Promise<void> => {
      begun();
      return new Promise((resolve) => (finish = resolve));
    };
    const { codes, onReject } = rejections();
    const unknown = await withServer(siteOf({ factory }), (port) => exchange(port, rawRequest("POST", path)));
    const app = siteOf({ factory }, optionsWith({ handler: handlerOf(work), onReject }));
    await withServer(app, async (port) => {
      const first = exchange(port, delivery());
      await started;
      expect(await exchange(port, delivery())).toBe(unknown);
      expect(codes).toEqual(["events-busy"]);
      finish();
      expect(await first).toBe(success);
      expect(await exchange(port, delivery())).toBe(success);
    });
  });
});
