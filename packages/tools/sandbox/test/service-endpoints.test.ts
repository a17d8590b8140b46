import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { registration, ServiceBench } from "./service-bench.ts";

const endpoints = "/api/v2/b2b-payments/webhook-endpoints";
const bench = new ServiceBench();
beforeAll(() => bench.open({ allowHttp: undefined }));
afterAll(() => bench.close());

describe("webhook endpoints", () => {
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
