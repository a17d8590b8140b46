import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { pino } from "pino";
import { httpReporter, logReporter, type PayoutConfirmation } from "../src/confirmation.ts";

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
let received: { method?: string | undefined; type?: string | undefined; body: unknown }[] = [];

beforeEach(async () => {
  received = [];
  status = 200;
  server = createServer((req, res) => {
    void (async () => {
      const body: unknown = JSON.parse(await readText(req));
      received.push({ method: req.method, type: req.headers["content-type"], body });
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

  test("adds the reason of a failure", async () => {
    await httpReporter({ url }).report({ ...confirmation, status: "failed", reason: "closed" }, never());
    expect(received[0]?.body).toMatchObject({ status: "failed", reason: "closed" });
  });

  test("posts the body that the configured builder makes", async () => {
    const buildBody = ({ idempotencyKey }: PayoutConfirmation): unknown => ({ transaction: idempotencyKey });
    await httpReporter({ url, buildBody }).report(confirmation, never());
    expect(received[0]?.body).toEqual({ transaction: "a.b.c" });
  });

  test.each([400, 404, 409, 500, 503, 302])("fails on the answer %d", async (answer) => {
    status = answer;
    await expect(httpReporter({ url }).report(confirmation, never())).rejects.toThrow();
    expect(received).toHaveLength(1);
  });

  test("fails when nobody answers", async () => {
    const dead = new URL("http://127.0.0.1:1/");
    await expect(httpReporter({ url: dead }).report(confirmation, never())).rejects.toThrow();
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
