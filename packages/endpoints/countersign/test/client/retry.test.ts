import { createServer, type AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { ServiceClientError } from "countersign/client";
import {
  clientOf,
  endpoint,
  failureOf,
  hangUp,
  json,
  silence,
  startService,
  type Answerer,
  type TestService,
} from "./service.ts";
import { parseRetryAfter } from "../../src/client/retry.ts";

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

const refusal = (options?: Parameters<typeof clientOf>[1]): Promise<ServiceClientError> =>
  failureOf(clientOf(service.baseUrl, options).createWebhookEndpoint(endpoint));

const created = json(201, { id: "endpoint-1" });
const halfAnAnswer: Answerer = (res) => {
  res.writeHead(201, { "content-length": "100" }).write('{"id":');
  setImmediate(() => res.destroy());
};
const noEnd: Answerer = (res) => {
  res.writeHead(201).write('{"id":');
};

/** Short for who never answers in full; who does, or hangs up, has the time that a busy machine needs. */
function timeoutFor(answerer: Answerer): number {
  return answerer === silence || answerer === noEnd ? 300 : 10_000;
}

describe("retries", () => {
  test.each<[string, Answerer]>([
    ["408", json(408, {})],
    ["429", json(429, {})],
    ["500", json(500, {})],
    ["a closed connection", hangUp],
    ["a connection that is lost in the answer", halfAnAnswer],
    ["silence", silence],
    ["an answer without end", noEnd],
  ])("follow %s", async (_name, answerer) => {
    service.answer(answerer, created);
    const answer = await clientOf(service.baseUrl, { timeoutMs: timeoutFor(answerer) }).createWebhookEndpoint(
      endpoint,
    );
    expect(answer).toEqual({ status: 201, body: { id: "endpoint-1" } });
    const [first, second] = service.received;
    expect(service.received).toHaveLength(2);
    expect(second?.body).toBe(first?.body);
  });

  test.each<[string, Answerer, object]>([
    ["503", json(503, { detail: "later" }), { code: "unavailable", status: 503, body: '{"detail":"later"}' }],
    ["429", json(429, {}), { code: "unavailable", status: 429 }],
    ["a closed connection", hangUp, { code: "network", status: undefined, body: undefined }],
    ["silence", silence, { code: "timeout", status: undefined }],
    ["an answer without end", noEnd, { code: "timeout", status: undefined }],
  ])("end with the last failure after %s", async (_name, answerer, expected) => {
    service.answer(answerer);
    expect(await refusal({ retries: 1, timeoutMs: timeoutFor(answerer) })).toMatchObject(expected);
    expect(service.received).toHaveLength(2);
  });

  test("are none with retries: 0", async () => {
    service.answer(json(503, {}), created);
    expect(await refusal({ retries: 0 })).toMatchObject({ code: "unavailable" });
    expect(service.received).toHaveLength(1);
  });

  test("are three by default", async () => {
    service.answer(json(500, {}));
    expect(await refusal()).toMatchObject({ status: 500 });
    expect(service.received).toHaveLength(4);
  });

  test("end at a refusal that follows a transient failure", async () => {
    service.answer(json(503, {}), json(401, {}), created);
    expect(await refusal()).toMatchObject({ code: "rejected", status: 401 });
    expect(service.received).toHaveLength(2);
  });

  test("follow a refused connection", async () => {
    const { port } = await freePort();
    const client = clientOf(`http://127.0.0.1:${port}`, { retries: 1 });
    const error = await failureOf(client.createWebhookEndpoint(endpoint));
    expect(error).toMatchObject({ code: "network", message: expect.stringContaining("(ECONNREFUSED)") });
  });

  test("are bounded in time, and the last answer is told", async () => {
    service.answer(json(503, {}));
    expect(await refusal({ retries: 10, retryDelayMs: 2_000, totalTimeoutMs: 1_000 })).toMatchObject({
      code: "unavailable",
      status: 503,
    });
    expect(service.received.length).toBeLessThan(4);
  });

  test("end with a time-out when the time is over within a request", async () => {
    service.answer(silence);
    expect(await refusal({ totalTimeoutMs: 800 })).toMatchObject({
      code: "timeout",
      message: expect.stringContaining("800 ms"),
    });
    expect(service.received).toHaveLength(1);
  });
});

describe("Retry-After", () => {
  test.each([
    ["seconds", () => "1"],
    // A date has whole seconds: this one is one to two seconds ahead.
    ["an HTTP date", () => new Date(Date.now() + 2000).toUTCString()],
  ])("is waited for as %s", async (_name, value) => {
    service.answer((res) => res.writeHead(503, { "retry-after": value() }).end(), created);
    await clientOf(service.baseUrl).createWebhookEndpoint(endpoint);
    const [first, second] = service.received.map(({ at }) => at);
    expect((second ?? 0) - (first ?? 0)).toBeGreaterThanOrEqual(990);
  });

  test("longer than the time left ends the call at once and is told", async () => {
    service.answer(json(429, {}, { "retry-after": "3600" }), created);
    expect(await refusal()).toMatchObject({ code: "unavailable", status: 429, retryAfterSeconds: 3600 });
    expect(service.received).toHaveLength(1);
  });
});

describe("the caller's signal", () => {
  const reason = new Error("the caller is gone");

  test("that is aborted before sends nothing", async () => {
    service.answer(created);
    const call = clientOf(service.baseUrl).createWebhookEndpoint(endpoint, {
      signal: AbortSignal.abort(reason),
    });
    expect(await failureOf(call)).toMatchObject({ code: "aborted", cause: reason });
    expect(service.received).toHaveLength(0);
  });

  test.each<[string, Answerer]>([
    ["a request", silence],
    ["an answer", noEnd],
    ["the wait for Retry-After", json(503, {}, { "retry-after": "30" })],
  ])("ends %s", async (_name, answerer) => {
    const controller = new AbortController();
    service.answer((res, request) => {
      answerer(res, request);
      setTimeout(() => controller.abort(reason), 50);
    });
    const call = clientOf(service.baseUrl).createWebhookEndpoint(endpoint, { signal: controller.signal });
    expect(await failureOf(call)).toMatchObject({ code: "aborted", cause: reason });
    expect(service.received).toHaveLength(1);
  });

  test("is let go of after the call", async () => {
    service.answer(created);
    const controller = new AbortController();
    let listeners = 0;
    const { signal } = controller;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners += 1;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners -= 1;
      remove(...args);
    };
    await clientOf(service.baseUrl).createWebhookEndpoint(endpoint, { signal });
    expect(listeners).toBe(0);
  });
});

test("the time limit holds with a fetch that does not listen to its signal", async () => {
  expect(await refusal({ fetch: () => new Promise(() => {}), timeoutMs: 50, retries: 0 })).toMatchObject({
    code: "timeout",
  });
});

async function freePort(): Promise<AddressInfo> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return address;
}

const now = Date.UTC(1994, 10, 6, 8, 49, 27);

describe("parseRetryAfter", () => {
  test.each<[string | null, number | undefined]>([
    [null, undefined],
    ["0", 0],
    ["120", 120],
    ["999999999", 999_999_999],
    ["Sun, 06 Nov 1994 08:49:37 GMT", 10],
    ["Sunday, 06-Nov-94 08:49:37 GMT", 10],
    ["Sun Nov  6 08:49:37 1994", 10],
    ["Sun, 06 Nov 1994 08:49:26 GMT", 0],
    ["1000000000", undefined],
    ["-1", undefined],
    ["+1", undefined],
    ["1.5", undefined],
    ["1, 2", undefined],
    ["", undefined],
    ["06 Nov 1994", undefined],
    ["1994-11-06T08:49:37Z", undefined],
    ["Sun, 06 Nov 1994 08:49:37 +0100", undefined],
    ["Sun, 99 Nov 1994 08:49:37 GMT", undefined],
    ["Xyz, 06 Xyz 1994 08:49:37 GMT", undefined],
  ])("reads %p", (value, seconds) => {
    expect(parseRetryAfter(value, now)).toBe(seconds);
  });

  test("rounds a part of a second up", () => {
    expect(parseRetryAfter("Sun, 06 Nov 1994 08:49:37 GMT", now + 1)).toBe(10);
  });
});
