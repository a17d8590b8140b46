import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { startSandbox } from "@countersign/sandbox";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { pino } from "pino";
import { httpReporter, logReporter, type PayoutConfirmation } from "../src/workers/confirmation.ts";

const confirmation: PayoutConfirmation = {
  idempotencyKey: "a.b.c",
  businessId: "b-1",
  status: "executed",
  reason: undefined,
  settledAt: new Date(0),
};

let server: Server;
let url: URL;
let status = 200;
let received: { method?: string | undefined; type?: string | undefined; apiKey?: unknown; body: unknown }[] =
  [];

beforeEach(async () => {
  received = [];
  status = 200;
  server = createServer((req, res) => {
    void (async () => {
      const body: unknown = JSON.parse(await readText(req));
      const { "content-type": type, "x-api-key": apiKey } = req.headers;
      received.push({ method: req.method, type, apiKey, body });
      res.writeHead(status, status === 302 ? { location: "/elsewhere" } : {}).end("answer");
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/confirm`);
});

afterEach(() => new Promise((resolve) => server.close(resolve)));

async function readText(req: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of req.setEncoding("utf8")) text += chunk;
  return text;
}

function never(): AbortSignal {
  return new AbortController().signal;
}

describe("httpReporter", () => {
  test("posts the outcome as JSON", async () => {
    await httpReporter({ url }).report(confirmation, never());
    expect(received).toEqual([
      {
        method: "POST",
        type: "application/json",
        body: {
          idempotency_key: "a.b.c",
          business_id: "b-1",
          status: "executed",
          settled_at: "1970-01-01T00:00:00.000Z",
        },
      },
    ]);
  });

  test("names its API key, when it has one", async () => {
    await httpReporter({ url }).report(confirmation, never());
    await httpReporter({ url, apiKey: "test-key" }).report(confirmation, never());
    expect(received.map(({ apiKey }) => apiKey)).toEqual([undefined, "test-key"]);
  });

  test("adds the reason of a failure", async () => {
    await httpReporter({ url }).report({ ...confirmation, status: "failed", reason: "closed" }, never());
    expect(received[0]?.body).toMatchObject({ status: "failed", reason: "closed" });
  });

  test("posts the body that the configured builder makes", async () => {
    const buildBody = ({ idempotencyKey }: PayoutConfirmation): unknown => ({ transaction: idempotencyKey });
    await httpReporter({ url, buildBody }).report(confirmation, never());
    expect(received[0]?.body).toEqual({ transaction: "a.b.c" });
  });

  test.each([
    [302, /CONFIRMATION_URL answered 302, a redirect, which is not followed/],
    [401, /CONFIRMATION_URL answered 401: see CONFIRMATION_API_KEY$/],
    [404, /CONFIRMATION_URL answered 404: see its path$/],
    [409, /CONFIRMATION_URL answered 409$/],
    [503, /CONFIRMATION_URL answered 503$/],
  ])("fails on the answer %d, and says which variable to look at", async (answer, message) => {
    status = answer;
    await expect(httpReporter({ url }).report(confirmation, never())).rejects.toThrow(message);
    expect(received).toHaveLength(1);
  });

  test.each<[string, (port: string) => string, RegExp]>([
    [
      "nobody answers",
      () => "http://127.0.0.1:2/hunter2",
      /nobody listens there; see its scheme, host and port$/,
    ],
    ["http is called as https", (port) => `https://127.0.0.1:${port}/hunter2`, /TLS fails: ERR_SSL_/],
    ["fetch refuses the port", () => "http://127.0.0.1:1/hunter2", /fetch refuses its port/],
    ["the host has no address", () => "http://nowhere.invalid/hunter2", /its host has no address/],
  ])("fails when %s, and shows no URL", async (_name, urlOf, message) => {
    const failed = httpReporter({ url: new URL(urlOf(url.port)) }).report(confirmation, never());
    await expect(failed).rejects.toThrow(message);
    await expect(failed).rejects.toThrow(/^CONFIRMATION_URL cannot be reached: (?!.*hunter2)/);
  });

  test("is understood by a sandbox", async () => {
    const sandbox = await startSandbox({ apiKey: "test-key" });
    try {
      const there = new URL("/sandbox/confirmations", sandbox.url);
      await httpReporter({ url: there, apiKey: "test-key" }).report(confirmation, never());
      expect(sandbox.confirmations()).toMatchObject([{ body: { idempotency_key: "a.b.c" } }]);
      const slash = new URL("/sandbox/confirmations/", sandbox.url);
      const wrong = httpReporter({ url: slash, apiKey: "test-key" }).report(confirmation, never());
      await expect(wrong).rejects.toThrow("CONFIRMATION_URL answered 404: see its path");
    } finally {
      await sandbox.close();
    }
  });

  test("ends with its signal", async () => {
    await expect(httpReporter({ url }).report(confirmation, AbortSignal.abort())).rejects.toThrow(/abort/i);
    expect(received).toEqual([]);
  });
});

describe("logReporter", () => {
  test("logs the outcome", async () => {
    const lines: string[] = [];
    const logger = pino({ base: null }, { write: (line: string) => lines.push(line) });
    await logReporter(logger).report(confirmation, never());
    expect(JSON.parse(lines[0]!)).toMatchObject({
      confirmation: { idempotencyKey: "a.b.c", status: "executed" },
    });
  });
});
