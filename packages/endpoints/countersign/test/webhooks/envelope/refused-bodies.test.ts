import { webhookEndpoint } from "countersign/webhooks";
import { describe, expect, test } from "@jest/globals";
import { framed, onOneConnection } from "@countersign/test-support/servers/one-connection.ts";
import { withServer } from "@countersign/test-support/servers/wire.ts";
import { basic, expressVersions, optionsWith, path } from "../endpoint/endpoint.ts";
import type { Overrides } from "@countersign/test-support/runs/sections.ts";

type WebhookEndpointOptions = Parameters<typeof webhookEndpoint>[0];

const next = "GET /next HTTP/1.1\r\nHost: platform.example\r\n\r\n";
// More than Node buffers by itself, so that an unread rest stands on the wire.
const body = "x".repeat(300_000);
const authorization = `Authorization: ${basic("service", "test-password")}`;
const json = "Content-Type: application/json";
const signature = `X-Payload-Signature: ${Buffer.alloc(32).toString("base64")}`;
const framings = [
  ["fixed", true],
  ["fixed", false],
  ["chunked", true],
  ["chunked", false],
  ["expect", false],
] as const;

const hidden: [title: string, options: Overrides<WebhookEndpointOptions>, headers: readonly string[]][] = [
  ["no credentials", {}, []],
  ["another address", { addresses: { allow: ["192.0.2.1"] } }, [authorization]],
  ["another media type", {}, [authorization, "Content-Type: text/plain"]],
  ["no signature", {}, [authorization, json]],
  ["a body over the limit", {}, [authorization, json, signature]],
  ["a body that another was signed for", { hmac: { limit: "1mb" } }, [authorization, json, signature]],
];

describe.each(expressVersions)("a hidden webhook on %s", (_version, factory) => {
  describe.each(hidden)("with %s", (_title, options, headers) => {
    test.each(framings)(
      "leaves no connection in silence: body %s, pipelined: %s",
      async (framing, pipelined) => {
        const app = factory();
        app.set("env", "test");
        app.get("/next", (_req, res) => void res.sendStatus(204));
        app.use(path, webhookEndpoint(optionsWith({ onReject: () => undefined, ...options })));
        app.use((_req, res) => void res.status(404).json({ unknown: true }));
        const first = framed(framing, { path, body, headers });
        const end = await withServer(app, (port) => onOneConnection(port, first, { next, pipelined }));
        expect(end).toEqual({ statuses: [404, 204], closed: false });
      },
    );
  });
});
