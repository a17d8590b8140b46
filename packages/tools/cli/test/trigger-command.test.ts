import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { startSandbox, type Sandbox } from "@countersign/devtools/sandbox";
import { withServer } from "@countersign/test-support/servers/wire.ts";
import { CliBench, expectOneLine, run, type Run } from "./cli-bench.ts";

// TEST VALUES.
const apiKey = "test-api-key";
const credentials = { username: "service", password: "test-password", secret: "test-secret" };

const bodies: string[] = [];
let status = 200;
const receiver = createServer((req, res) => {
  let body = "";
  req.on("data", (chunk: Buffer) => (body += chunk.toString()));
  req.on("end", () => {
    bodies.push(body);
    res.writeHead(status).end();
  });
});
let receiverUrl = "";
let sandbox: Sandbox;
const cli = new CliBench();
beforeAll(async () => {
  await cli.open();
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  receiverUrl = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hooks`;
});
beforeEach(async () => {
  [status, bodies.length] = [200, 0];
  sandbox = await startSandbox({ apiKey, allowHttp: "loopback", delivery: { initialDelayMs: 3_600_000 } });
});
afterEach(() => sandbox.close());
afterAll(async () => {
  receiver.close();
  await cli.close();
});

function register(): void {
  sandbox.deliveries.addEndpoint({ url: receiverUrl, allowHttp: "loopback", ...credentials });
}

function spawned(...args: readonly string[]): Promise<Run> {
  return cli.spawned([...args, "--url", sandbox.url], { COUNTERSIGN_API_KEY: apiKey });
}

const silence: RequestListener = () => {};

/** Triggers an event at a server that is no sandbox. */
async function triggeredAt(listener: RequestListener, ...flags: readonly string[]): Promise<Run> {
  // Who answers has the time that a busy machine needs.
  const common = ["--api-key", apiKey, "--timeout", listener === silence ? "300" : "10000"];
  return await withServer(listener, (port) =>
    run(["trigger", "x", "--url", `http://127.0.0.1:${port}`, ...common, ...flags]),
  );
}

describe("countersign trigger", () => {
  test("has the event sent with sample data, and prints a line for its delivery", async () => {
    register();
    const { code, out, err } = await spawned("trigger", "payment_request.repayment.repaid");
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const [triggered, sent, delivered] = out.split("\n");
    expect(sent).toBe("  data.payment_request_id  request-1");
    expect(triggered).toMatch(/^triggered payment_request\.repayment\.repaid, event_id [0-9a-f-]{36}$/);
    expect(delivered).toMatch(/^\d\d:\d\d:\d\dZ +#1 +delivered +200 +payment_request\.repayment\.repaid$/);
    expect(JSON.parse(bodies[0] ?? "")).toMatchObject({
      events: [{ type: "payment_request.repayment.repaid", data: { payment_request_id: "request-1" } }],
    });
  });

  test("sends the data and the event_id that it is given, and any type", async () => {
    register();
    const args = ["--data", '{"a":1}', "--event-id", "event-7", "--json"];
    const { code, out } = await spawned("trigger", "new.event", ...args);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      event: { type: "new.event", event_id: "event-7" },
      deliveries: [{ state: "delivered", eventIds: ["event-7"], attempts: [{ status: 200 }] }],
      delivered: true,
    });
    expect(JSON.parse(bodies[0] ?? "")).toMatchObject({ events: [{ type: "new.event", data: { a: 1 } }] });
    expect(out).not.toMatch(/test-password|test-secret|test-api-key/);
  });

  test("ends with 1 where an endpoint refuses, and where there is none", async () => {
    const none = await spawned("trigger", "buyer.status_changed", "--wait", "200");
    expect(none).toMatchObject({ code: 1, out: expect.stringMatching(/is an endpoint registered\?\n$/) });
    register();
    status = 500;
    const refused = await spawned("trigger", "buyer.status_changed");
    expect(refused).toMatchObject({ code: 1, out: expect.stringMatching(/pending +500 .*again /) });
  });

  test("shows control characters of an answer as text, and colours in a terminal alone", async () => {
    register();
    const { url } = sandbox;
    const args = ["trigger", "x", "--api-key", apiKey];
    const { out } = await run([...args, "--url", url], { colours: true });
    expect(out.split("\n").find((line) => line.includes("delivered"))).toContain("\u001B[32m");
    const [known] = sandbox.deliveries.list();
    const deliveries = [{ ...known, eventTypes: ["\u001B[2J"] }];
    const hostile = await triggeredAt((_req, res) =>
      res.end(JSON.stringify({ event_ids: ["\u001B[31m"], deliveries })),
    );
    expect(hostile.out).toMatch(
      /^triggered x, event_id \\u\{1b\}\[31m\n {2}data {2}\{\}\n.* delivered +200 +\\u\{1b\}\[2J\n$/,
    );
    expect(hostile.out).not.toContain("\u001B");
  });

  test.each<[string, RequestListener, number, RegExp]>([
    ["a 401", (_req, res) => res.writeHead(401).end(), 1, /refuses the API key/],
    ["a 404", (_req, res) => res.writeHead(404).end(), 1, /status 404\); check --url/],
    ["a redirect", (_req, res) => res.writeHead(302, { location: "/" }).end(), 1, /status 302/],
    ["a page", (_req, res) => res.end("<html>"), 1, /no sandbox/],
    ["no id of an event", (_req, res) => res.end('{"event_ids":[]}'), 1, /no sandbox/],
    ["other deliveries", (_req, res) => res.end('{"event_ids":["a"],"deliveries":[{}]}'), 1, /no sandbox/],
    ["silence", silence, 3, /within 300 ms/],
    ["a closed connection", (_req, res) => res.destroy(), 3, /closed the connection/],
  ])("%s ends with the code and one line", async (_name, listener, code, line) => {
    expectOneLine(await triggeredAt(listener, "--json"), code, line);
  });

  test.each<[string, string, number, RegExp]>([
    ["data that is no JSON", "--data {", 2, /--data: is not JSON/],
    ["data that is no object", "--data []", 1, /the sandbox answers: data: /],
    ["a wrong API key", "--api-key test-other", 1, /refuses the API key \(status 401\)\n$/],
    ["a closed port", "--url http://127.0.0.1:1", 3, /nothing listens/],
    ["a bad --wait", "--wait soon", 2, /--wait: expected an integer/],
    ["a query in the URL", "--url https://sandbox.example/?a", 2, /without credentials and query/],
    ["an empty API key", "--api-key=", 2, /--api-key: expected printable ASCII/],
    ["an API key with a line end", "--api-key=a\nb", 2, /--api-key: expected printable ASCII/],
    ["a bad --timeout", "--timeout 1s", 2, /--timeout: expected an integer/],
    ["a missing --ca file", "--ca missing.pem", 2, /--ca missing\.pem: cannot be read/],
  ])("%s ends with the code and one line", async (_name, args, code, line) => {
    const ended = await run(["trigger", "x", "--url", sandbox.url, "--api-key", apiKey, ...args.split(" ")]);
    expectOneLine(ended, code, line);
  });

  test("takes a slash at the end of the URL", async () => {
    register();
    const args = ["trigger", "x", "--url", `${sandbox.url}/`, "--api-key", apiKey];
    expect(await run(args)).toMatchObject({ code: 0, err: "" });
  });
});
