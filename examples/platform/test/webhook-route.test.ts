import { writeFileSync } from "node:fs";
import path from "node:path";
import type { Environment } from "@countersign/example-settings";
import { describe, expect, test } from "@jest/globals";
import { pinoLog } from "@countersign/observe/log";
import { pino } from "pino";
import { expectWarning } from "@countersign/test-support/runs/expect-warning.ts";
import { testFolder } from "@countersign/test-support/runs/after-test.ts";
import { testAuthority } from "@countersign/test-support/servers/certificates.ts";
import type { PlatformPorts } from "../src/platform.ts";
import { runPlatform, type RunningPlatform } from "./running-platform.ts";
import { envelope, sendTestWebhook, webhookEnvironment, type SentWebhook } from "./webhook-sender.ts";

const run = (env: Environment = {}, ports?: Partial<PlatformPorts>): Promise<RunningPlatform> =>
  runPlatform({ ...webhookEnvironment, WEBHOOK_ALLOW_HTTP: "1", ...env }, ports);

async function inspect(platform: RunningPlatform, what: "events" | "state"): Promise<unknown> {
  const response = await fetch(`${platform.url}/inspect/${what}`);
  return response.json();
}

describe("the webhook route", () => {
  test("applies the events of a webhook and acknowledges them", async () => {
    const platform = await run();
    const request = { payment_request_id: "r-1" };
    const body = envelope(
      { event_id: "ev-1" },
      {
        event_id: "ev-2",
        type: "seller.status_changed",
        data: { seller_id: "s-1", old_status: "ACTIVE", new_status: "SUSPENDED" },
      },
      { event_id: "ev-3", type: "payment_request.repayment.repaid", data: request },
      {
        event_id: "ev-4",
        type: "payment_request.repayment.reminder",
        data: { ...request, due_date: "2024-01-31", days_from_due_date: "-3" },
      },
      { event_id: "ev-5", type: "buyer.limit_changed", data: 7 },
    );
    expect((await sendTestWebhook(platform.url, { body })).status).toBe(200);
    expect(await inspect(platform, "state")).toEqual({
      buyers: { "b-1": "ACTIVE" },
      sellers: { "s-1": "SUSPENDED" },
      payment_requests: { "r-1": { status: "CLOSED", reminders: 1 } },
    });
    expect(await inspect(platform, "events")).toEqual([
      { event_id: "ev-1", type: "buyer.status_changed", applied: 1 },
      { event_id: "ev-2", type: "seller.status_changed", applied: 1 },
      { event_id: "ev-3", type: "payment_request.repayment.repaid", applied: 1 },
      { event_id: "ev-4", type: "payment_request.repayment.reminder", applied: 1 },
      { event_id: "ev-5", type: "buyer.limit_changed", applied: 1 },
    ]);
  });

  test("applies the other events of a webhook that has a malformed one, and tells operators of that", async () => {
    const lines: string[] = [];
    const logger = pino({}, { write: (line: string) => lines.push(line) });
    const platform = await run({}, { logger });
    const body = envelope(
      { event_id: "ev-1" },
      { event_id: "ev-2", data: { buyer_id: 7 } },
      { event_id: "ev-3" },
    );
    expect((await sendTestWebhook(platform.url, { body })).status).toBe(200);
    expect(await inspect(platform, "events")).toMatchObject([{ event_id: "ev-1" }, { event_id: "ev-3" }]);
    expectWarning(/^\[event-malformed\] .*ev-2/);
    expect(lines.join("")).toContain('"eventId":"ev-2"');
  });
});

describe("an unknown route", () => {
  const elsewhere = "/hooks/00000000";

  test.each<[string, SentWebhook, Environment]>([
    ["a wrong password", { password: "wrong" }, {}],
    ["a wrong signature", { secret: "wrong" }, {}],
    ["a body that is no envelope", { body: "{}" }, {}],
    ["GET", { method: "GET", body: "" }, {}],
    ["plain http", {}, { WEBHOOK_ALLOW_HTTP: undefined }],
    [
      "plain http through a proxy",
      { headers: { "X-Forwarded-Proto": "http" } },
      { WEBHOOK_ALLOW_HTTP: "0", TRUST_PROXY: "127.0.0.1" },
    ],
    [
      "https by the word of nobody",
      { headers: { "X-Forwarded-Proto": "https" } },
      { WEBHOOK_ALLOW_HTTP: "0" },
    ],
    [
      "no webhook route",
      {},
      {
        WEBHOOK_PATH: undefined,
        WEBHOOK_USERNAME: undefined,
        WEBHOOK_PASSWORD: undefined,
        WEBHOOK_SECRETS: undefined,
      },
    ],
  ])("is what %s sees", async (_name, webhook, env) => {
    const platform = await run(env);
    const got = await sendTestWebhook(platform.url, webhook);
    const unknown = await sendTestWebhook(platform.url, { ...webhook, path: elsewhere });
    expect(unknown.status).toBe(404);
    expect(got.body.replaceAll(webhookEnvironment.WEBHOOK_PATH, elsewhere)).toBe(unknown.body);
    expect({ ...got, body: "" }).toEqual({ ...unknown, body: "" });
    expect(await inspect(platform, "events")).toEqual([]);
  });
});

describe("https", () => {
  test("is served by the platform itself", async () => {
    const folder = testFolder();
    const authority = testAuthority();
    const { cert, key } = authority.issue();
    const files = { TLS_CERT: path.join(folder, "server.crt"), TLS_KEY: path.join(folder, "server.key") };
    writeFileSync(files.TLS_CERT, cert);
    writeFileSync(files.TLS_KEY, key);
    const platform = await run({ WEBHOOK_ALLOW_HTTP: undefined, ...files });
    expect(platform.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    expect((await sendTestWebhook(platform.url, { ca: authority.cert })).status).toBe(200);
    await expect(sendTestWebhook(platform.url)).rejects.toThrow(/certificate|unable to/i);
  });

  test("is ended by a trusted proxy", async () => {
    const platform = await run({ WEBHOOK_ALLOW_HTTP: undefined, TRUST_PROXY: "127.0.0.1" });
    const headers = { "X-Forwarded-Proto": "https" };
    expect((await sendTestWebhook(platform.url, { headers })).status).toBe(200);
  });
});

describe("the log", () => {
  test("has the code of a refusal, and no credential", async () => {
    const lines: string[] = [];
    const logger = pino({}, { write: (line: string) => lines.push(line) });
    const end = pinoLog(logger);
    try {
      const platform = await run({}, { logger });
      await sendTestWebhook(platform.url, { password: "test-wrong-password" });
      await sendTestWebhook(platform.url, { secret: "test-wrong-secret" });
      await sendTestWebhook(platform.url, { body: "{" });
      const log = lines.join("");
      for (const code of ["credentials-wrong", "payload-signature-wrong", "json"])
        expect(log).toContain(code);
      expect(log).not.toMatch(/test-|ev-1|\bb-1\b|c2VydmljZT/);
    } finally {
      end();
    }
  });
});
