import { spawn } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { startSandbox, type Sandbox } from "@countersign/sandbox";
import { CliBench, run, type Run } from "./cli-bench.ts";

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

describe("countersign trigger", () => {
  test("has the event sent with sample data, and prints a line for its delivery", async () => {
    register();
    const { code, out, err } = await spawned("trigger", "payment_request.repayment.repaid");
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const [triggered, delivered] = out.split("\n");
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

  test.each<[string, readonly string[], number, RegExp]>([
    ["data that is no JSON", ["--data", "{"], 2, /--data: is not JSON/],
    ["data that is no object", ["--data", "[]"], 1, /the sandbox answers: data: /],
    ["a wrong API key", ["--api-key", "test-other"], 1, /refuses the API key/],
    ["a closed port", ["--url", "http://127.0.0.1:1"], 3, /nothing listens/],
    ["a bad --wait", ["--wait", "soon"], 2, /--wait: expected an integer/],
  ])("%s ends with the code and one line", async (_name, args, code, line) => {
    const ended = await run(["trigger", "x", "--url", sandbox.url, "--api-key", apiKey, ...args]);
    expect(ended).toMatchObject({ code, out: "" });
    expect(ended.err).toMatch(line);
    expect(ended.err).toMatch(/^error: [^\n]*\n$/);
  });
});

describe("countersign resend", () => {
  test("sends the same bytes again: by the number of a delivery, its webhook and its event", async () => {
    register();
    await spawned("trigger", "buyer.status_changed", "--event-id", "event-1");
    const [delivery] = sandbox.deliveries.list();
    for (const id of ["1", "#1", delivery?.webhookId ?? "", "event-1"]) {
      const { code, out } = await spawned("resend", id);
      expect({ code, out }).toMatchObject({
        code: 0,
        out: expect.stringMatching(/^\S+ +#1 +delivered +200 /),
      });
    }
    expect(bodies).toHaveLength(5);
    expect(new Set(bodies).size).toBe(1);
  });

  test("begins a new retry period for what was not delivered", async () => {
    register();
    status = 503;
    await spawned("trigger", "buyer.status_changed");
    status = 200;
    const { code, out } = await spawned("resend", "1", "--json");
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      delivered: true,
      deliveries: [{ id: 1, state: "delivered", attempts: [{ status: 503 }, { status: 200 }] }],
    });
  });

  test("an unknown id ends with 1 and one line", async () => {
    expect(await spawned("resend", "no-such")).toEqual({
      code: 1,
      out: "",
      err: "error: the sandbox answers: no delivery, webhook or event of this id (status 404)\n",
    });
  });
});

describe("countersign sandbox", () => {
  test.each([false, true])("prints a line for each delivery as it happens; as JSON: %p", async (json) => {
    const file = fileURLToPath(new URL("../dist/cli.js", import.meta.url));
    const env = { ...process.env, FORCE_COLOR: undefined, NO_COLOR: undefined };
    const args = [file, "sandbox", "--api-key", apiKey, ...(json ? ["--json"] : [])];
    const child = spawn(process.execPath, args, { env });
    let out = "";
    child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
    const until = async (pattern: RegExp): Promise<RegExpExecArray> => {
      for (;;) {
        const found = pattern.exec(out);
        if (found !== null) return found;
        if (child.exitCode !== null) throw new Error(`ended: ${out}`);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    };
    const [, url = ""] = await until(/(http:\/\/127\.0\.0\.1:\d+)/);
    const env2 = { COUNTERSIGN_API_KEY: apiKey };
    const endpoint = ["--url", receiverUrl, "--username", "u", "--password", "p", "--secret", "test-secret"];
    expect(await cli.spawned(["endpoint", "create", "--base-url", url, ...endpoint], env2)).toMatchObject({
      code: 0,
    });
    await cli.spawned(["trigger", "buyer.status_changed", "--url", url], env2);
    if (json) await until(/^\{"delivery":\{"id":1,.*"state":"delivered".*\}\}$/m);
    else await until(/^\d\d:\d\d:\d\dZ +#1 +delivered +200 +buyer\.status_changed$/m);
    child.kill("SIGINT");
    expect(await new Promise((resolve) => child.on("close", resolve))).toBe(0);
    expect(out).not.toContain("test-secret");
  });
});
