import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import type { SandboxOptions } from "../../src/sandbox/service/options.ts";
import { startSandbox, type Sandbox } from "../../src/sandbox/service/sandbox.ts";
import { registration, ServiceBench } from "./service-bench.ts";

async function started(options: Partial<SandboxOptions> = {}): Promise<Sandbox> {
  const sandbox = await startSandbox({ apiKey: "test-key", ...options });
  afterTest(() => sandbox.close());
  return sandbox;
}

describe("startSandbox", () => {
  test.each<[string, object | undefined, RegExp]>([
    ["no options", undefined, /options must be an object, got undefined/],
    [
      "an unknown option",
      { apikey: "k" },
      /unknown option apikey; did you mean apiKey\? known options are apiKey, host/,
    ],
    ["no apiKey", { apiKey: undefined }, /option apiKey must be/],
    ["an apiKey with a line break", { apiKey: "test-key\n" }, /option apiKey/],
    ["any address", { host: "0.0.0.0" }, /option host must be a loopback address/],
    ["a name that begins like loopback", { host: "127.example.com" }, /option host/],
    ["localhost, which a hosts file decides", { host: "localhost" }, /option host/],
    ["an empty host, which is any address", { host: "" }, /option host/],
    ["a port that is none", { port: 65_536 }, /option port must be an integer from 0 to 65535/],
    ["another word for allowHttp", { allowHttp: "any" }, /allowHttp must be true, false or "loopback"/],
    ["an empty ca, which would be Node's list", { ca: "" }, /option ca must be issuer certificates/],
    ["a ca that is no certificate", { ca: "authority.pem" }, /option ca/],
    ["a bad delivery option", { delivery: { duplicate: 2 } }, /option delivery.duplicate/],
    ["a speed of zero", { speed: 0 }, /option speed must be a number above 0, got 0/],
  ])("refuses %s", async (_name, changes, message) => {
    const refusal = startSandbox((changes && { apiKey: "k", ...changes }) as SandboxOptions);
    await expect(refusal).rejects.toThrow(TypeError);
    await expect(refusal).rejects.toThrow(message);
    await expect(refusal).rejects.not.toThrow(/test[- ]key/);
  });

  test.each([
    ["127.0.0.1", /^http:\/\/127\.0\.0\.1:\d+$/],
    ["127.8.9.10", /^http:\/\/127\.8\.9\.10:\d+$/],
    ["::1", /^http:\/\/\[::1\]:\d+$/],
  ])("listens on %s", async (host, url) => {
    const sandbox = await started({ host });
    expect(sandbox.url).toMatch(url);
    expect((await fetch(sandbox.url)).status).toBe(401);
  });

  test("takes the port that it is given, and rejects when another has it", async () => {
    const sandbox = await started();
    const port = Number(new URL(sandbox.url).port);
    await expect(startSandbox({ apiKey: "test-key", port })).rejects.toMatchObject({ code: "EADDRINUSE" });
    await sandbox.close();
    expect((await started({ port })).url).toBe(sandbox.url);
  });

  test("closes once, however often it is told", async () => {
    const sandbox = await started();
    await Promise.all([sandbox.close(), sandbox.close()]);
    await sandbox.close();
    await expect(fetch(sandbox.url)).rejects.toThrow();
  });

  test("changes nothing any more once it is closed", async () => {
    const sandbox = await started();
    await sandbox.close();
    const changes: (() => unknown)[] = [
      () => sandbox.changeBuyerStatus("b", "ACTIVE"),
      () => sandbox.createPaymentRequest({ payment_request_id: "late", due_date: "2030-01-31" }),
      () => sandbox.deliveries.notify([{ type: "t", data: {} }]),
      () => sandbox.paymentRequest("late"),
    ];
    for (const change of changes) expect(change).toThrow(/the database is closed/);
  });

  test("refuses in the library what it refuses over HTTP", async () => {
    const sandbox = await started();
    const refused: [() => unknown, string][] = [
      [() => sandbox.changeBuyerStatus("", "ACTIVE"), "invalid-request"],
      [() => sandbox.changeSellerStatus("s", "DELETED" as "ACTIVE"), "invalid-request"],
      [() => sandbox.createPaymentRequest({ due_date: "soon" }), "invalid-request"],
      [() => sandbox.buyerStatus("nobody"), "not-found"],
      [() => sandbox.sellerStatus("nobody"), "not-found"],
      [() => sandbox.paymentRequest("nobody"), "not-found"],
      [() => sandbox.repay("nobody"), "not-found"],
      [() => sandbox.remind("nobody"), "not-found"],
    ];
    for (const [work, code] of refused) {
      expect(work).toThrow(expect.objectContaining({ name: "SandboxError", code }));
    }
  });
});

const endpoints = "/api/v2/b2b-payments/webhook-endpoints";
const bench = new ServiceBench();

describe("webhook endpoints", () => {
  beforeAll(() => bench.open({ allowHttp: undefined }));
  afterAll(() => bench.close());

  const good = { url: "https://platform.example/hooks", ...registration };

  test("are created, each with an id, and listed without credentials", async () => {
    const { status, body } = await bench.post(endpoints, good);
    expect({ status, body }).toEqual({ status: 201, body: { id: expect.any(String), url: good.url } });
    expect(bench.sandbox.deliveries.endpoints()).toContainEqual(body);
  });

  test.each<[string, Record<string, unknown>, RegExp]>([
    ["no url", { ...good, url: undefined }, /^url: /],
    ["http", { ...good, url: "http://127.0.0.1/hooks" }, /the URL must be https/],
    ["a password that is no text", { ...good, auth_password: 5 }, /^auth_password: /],
    ["the names of customer support", { ...good, basic_auth_username: "x" }, /basic_auth_username/],
  ])("are refused with %s, and no credential is shown", async (_name, body, detail) => {
    const before = bench.sandbox.deliveries.endpoints().length;
    const answer = await bench.post(endpoints, body);
    expect(answer).toMatchObject({
      status: 400,
      body: { code: "invalid-request", detail: expect.stringMatching(detail) },
    });
    expect(JSON.stringify(answer.body)).not.toMatch(/test-password|test-secret/);
    expect(bench.sandbox.deliveries.endpoints()).toHaveLength(before);
  });
});
