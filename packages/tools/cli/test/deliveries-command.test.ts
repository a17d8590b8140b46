import { spawn } from "node:child_process";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { startSandbox, type Delivery, type Sandbox } from "@countersign/sandbox";
import { run, type Run } from "./cli-bench.ts";

// TEST VALUES.
const apiKey = "test-api-key";
const credentials = { username: "service", password: "test-password", secret: "test-secret" };

const receiver = createServer((req, res) => {
  res.statusCode = req.url === "/refusing" ? 503 : 200;
  res.end();
});
let sandbox: Sandbox;
let [receiverUrl, accepting, refusing, changed] = ["", "", "", ""];
beforeAll(async () => {
  receiverUrl = await listening(receiver);
});
beforeEach(async () => {
  // Retries are far off: what is listed stays as it is.
  sandbox = await startSandbox({ apiKey, allowHttp: true, delivery: { initialDelayMs: 3_600_000 } });
  const add = (path: string): string =>
    sandbox.deliveries.addEndpoint({ url: receiverUrl + path, allowHttp: true, ...credentials }).id;
  accepting = add("/accepting");
  refusing = add("/refusing");
  changed = sandbox.changeBuyerStatus("buyer-1", "ACTIVE").event_id ?? "";
  expect(changed).not.toBe("");
  await settled(2);
});
afterEach(() => sandbox.close());
afterAll(() => new Promise((resolve) => receiver.close(resolve)));

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Waits until so many deliveries have been attempted. */
async function settled(count: number): Promise<void> {
  while (sandbox.deliveries.list().filter(({ attempts }) => attempts.length > 0).length < count) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function deliveries(...args: readonly string[]): Promise<Run> {
  return run(["deliveries", "--url", sandbox.url, "--api-key", apiKey, ...args]);
}

const silence: RequestListener = () => {};

async function deliveriesAt(listener: RequestListener): Promise<Run> {
  const server = createServer(listener);
  // Who answers has the time that a busy machine needs.
  const timeoutMs = listener === silence ? "300" : "10000";
  try {
    return await deliveries("--url", await listening(server), "--timeout", timeoutMs);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

describe("countersign deliveries", () => {
  test("prints a table, oldest first", async () => {
    const { code, out, err } = await deliveries();
    const [first, second] = sandbox.deliveries.list();
    const next = `${new Date(second?.nextAttemptAt ?? 0).toISOString().slice(11, 19)}Z`;
    const [events] = first?.eventTypes ?? [];
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out.split("\n").map((line) => line.split(/ {2,}/))).toEqual([
      ["id", "state", "tries", "last answer", "next", "events", "url"],
      [`#${first?.id}`, "delivered", "1", "200", "-", events, `${receiverUrl}/accepting`],
      [`#${second?.id}`, "pending", "1", "503", next, events, `${receiverUrl}/refusing`],
      [""],
    ]);
  });

  test("--json prints one document with the attempts", async () => {
    const { out } = await deliveries("--json");
    expect(JSON.parse(out)).toEqual({ deliveries: JSON.parse(JSON.stringify(sandbox.deliveries.list())) });
    expect(out).not.toMatch(/test-password|test-secret|test-api-key/);
  });

  test.each<[string, () => readonly string[], () => readonly string[]]>([
    ["--state delivered", () => ["--state", "delivered"], () => [accepting]],
    ["--state pending", () => ["--state", "pending"], () => [refusing]],
    ["--state failed", () => ["--state", "failed"], () => []],
    ["--event", () => ["--event", changed], () => [accepting, refusing]],
    ["an unknown event", () => ["--event", "other & more"], () => []],
    ["--limit", () => ["--limit", "1"], () => [refusing]],
    ["a slash at the end of the URL", () => ["--url", `${sandbox.url}/`], () => [accepting, refusing]],
  ])("lists by %s", async (_name, args, endpoints) => {
    const { code, out } = await deliveries("--json", ...args());
    const listed = (JSON.parse(out) as { deliveries: Delivery[] }).deliveries;
    expect({ code, endpoints: listed.map(({ endpointId }) => endpointId) }).toEqual({
      code: 0,
      endpoints: endpoints(),
    });
  });

  test("shows control characters of ids as text, and colours in a terminal alone", async () => {
    const delivery = {
      ...sandbox.deliveries.list()[0],
      eventTypes: ["\u001B[2J"],
      attempts: [],
    };
    const { out } = await deliveriesAt((_req, res) => res.end(JSON.stringify({ deliveries: [delivery] })));
    expect(out).toMatch(/^#\d+ +delivered +0 +- +- +\\u\{1b\}\[2J +http/m);
    expect(out).not.toContain("\u001B");
    const args = ["deliveries", "--url", sandbox.url, "--api-key", apiKey];
    const lines = (await run(args, { colours: true })).out.split("\n");
    expect(lines.find((line) => line.includes("delivered"))).toContain("\u001B[32m");
  });

  test.each<[string, RequestListener, number, RegExp]>([
    ["a 401", (_req, res) => res.writeHead(401).end(), 1, /refuses the API key/],
    ["a 404", (_req, res) => res.writeHead(404).end(), 1, /status 404\); check --url/],
    ["a redirect", (_req, res) => res.writeHead(302, { location: "/" }).end(), 1, /status 302/],
    ["a page", (_req, res) => res.end("<html>"), 1, /no sandbox/],
    ["other JSON", (_req, res) => res.end('{"deliveries":[{}]}'), 1, /no sandbox/],
    ["silence", silence, 3, /within 300 ms/],
    ["a closed connection", (_req, res) => res.destroy(), 3, /closed the connection/],
  ])("%s ends with the code and one line", async (_name, listener, code, line) => {
    const ended = await deliveriesAt(listener);
    expect(ended).toMatchObject({ code, out: "" });
    expect(ended.err).toMatch(line);
    expect(ended.err).toMatch(/^error: [^\n]*\n$/);
  });

  test("a wrong API key ends with 1", async () => {
    const { code, err } = await deliveries("--api-key", "test-wrong-key");
    expect({ code, err }).toEqual({ code: 1, err: "error: the sandbox refuses the API key (status 401)\n" });
  });

  test.each<[string, readonly string[], RegExp]>([
    [
      "http elsewhere",
      ["--url", "http://sandbox.example"],
      /--url: plain http shows everything .*add --allow-http/,
    ],
    ["a query in the URL", ["--url", "https://sandbox.example/?a"], /--url must have no query/],
    ["an empty API key", ["--api-key", ""], /--api-key: expected printable ASCII/],
    ["an API key with a line end", ["--api-key", "a\nb"], /--api-key: expected printable ASCII/],
    ["an unknown state", ["--state", "done"], /Allowed choices are pending, delivered, failed/],
    ["an empty event", ["--event", ""], /--event: expected the id/],
    ["a bad --limit", ["--limit", "0"], /--limit: expected an integer from 1 to 9999/],
    ["a bad --interval", ["--interval", "1"], /--interval: expected an integer from 50/],
    ["a bad --timeout", ["--timeout", "1s"], /--timeout: expected an integer/],
    ["a missing --ca file", ["--ca", "missing.pem"], /--ca missing\.pem: cannot be read/],
  ])("%s ends with 2 and one line", async (_name, args, line) => {
    const { code, out, err } = await deliveries(...args);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toMatch(line);
    expect(err).toMatch(/^error: [^\n]*\n$/);
  });
});

describe("countersign deliveries --follow", () => {
  test("prints what is new or has changed, each once, until SIGINT ends it with 0", async () => {
    const followed = follow("--json");
    await followed.lines(2);
    const { event_id: event = "none" } = sandbox.changeSellerStatus("seller-1", "REJECTED");
    // Once each as soon as it is there, and perhaps once before it was attempted.
    await followed.until((line) => line.includes(event) && line.includes('"status":200'));
    await followed.until((line) => line.includes(event) && line.includes('"status":503'));
    const { code, out } = await followed.interrupt();
    const lines = out.trim().split("\n");
    expect(code).toBe(0);
    expect(new Set(lines).size).toBe(lines.length);
    expect(lines.slice(2).every((line) => line.includes(event))).toBe(true);
  });

  test("prints the head of the table once", async () => {
    const followed = follow();
    await followed.lines(3);
    sandbox.remind(sandbox.createPaymentRequest({ due_date: "2030-01-31" }).payment_request_id);
    await followed.lines(5);
    const { out } = await followed.interrupt();
    expect(out.match(/last answer/g)).toHaveLength(1);
  });

  test("ends without a stack when nobody reads its output any more", async () => {
    const followed = follow();
    await followed.lines(3);
    followed.stopReading();
    sandbox.createPaymentRequest({ payment_request_id: "unread", due_date: "2030-01-31" });
    sandbox.remind("unread");
    expect(await followed.ended).toMatchObject({ code: 1, err: "" });
  });

  test("ends with 3 when the sandbox is gone", async () => {
    const other = await startSandbox({ apiKey });
    const followed = follow("--url", other.url);
    await followed.lines(1);
    await other.close();
    const { code, err } = await followed.ended;
    expect(code).toBe(3);
    expect(err).toMatch(/^error: [^\n]*\n$/);
  });
});

interface Followed {
  readonly ended: Promise<Run>;
  readonly lines: (count: number) => Promise<void>;
  readonly until: (matches: (line: string) => boolean) => Promise<void>;
  readonly interrupt: () => Promise<Run>;
  readonly stopReading: () => void;
}

/** Follows in a process of its own, which takes the API key from its environment. */
function follow(...args: readonly string[]): Followed {
  const cli = fileURLToPath(new URL("../dist/cli.js", import.meta.url));
  const all = [cli, "deliveries", "--url", sandbox.url, "--follow", "--interval", "50", ...args];
  const env = { ...process.env, COUNTERSIGN_API_KEY: apiKey, FORCE_COLOR: undefined, NO_COLOR: undefined };
  const child = spawn(process.execPath, all, { env });
  let [out, err] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
  const ended = new Promise<Run>((resolve) => child.on("close", (code) => resolve({ code, out, err })));
  const when = async (holds: (lines: string[]) => boolean): Promise<void> => {
    while (!holds(out.split("\n").slice(0, -1))) {
      if (child.exitCode !== null) throw new Error(`ended with ${child.exitCode}: ${err}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  return {
    ended,
    lines: (count) => when((lines) => lines.length >= count),
    until: (matches) => when((lines) => lines.some(matches)),
    interrupt: () => {
      child.kill("SIGINT");
      return ended;
    },
    stopReading: () => child.stdout.destroy(),
  };
}
