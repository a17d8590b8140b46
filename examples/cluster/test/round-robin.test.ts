import { request, type IncomingMessage, type Server } from "node:http";
import { connect } from "node:net";
import { buffer, text } from "node:stream/consumers";
import { beforeEach, describe, expect, test } from "@jest/globals";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { close, listen } from "@countersign/test-support/servers/http-client.ts";
import { startRoundRobin, type RoundRobin } from "../src/round-robin.ts";

const callerAddress = "203.0.113.7";

interface Received {
  readonly target: number;
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
}

let received: Received[];
let targets: readonly { readonly server: Server; readonly port: number }[];
let proxy: RoundRobin;
let answer: (req: IncomingMessage, target: number) => "answer" | "cut" | "hang";

beforeEach(async () => {
  received = [];
  answer = () => "answer";
  targets = await Promise.all([0, 1].map(startTarget));
  const urls = targets.map(({ port }) => `http://127.0.0.1:${port}`);
  proxy = await startRoundRobin({ targets: urls, port: 0, callerAddress });
  afterTest(() => proxy.close());
});

async function startTarget(target: number) {
  const started = await listen((req, res) => {
    void (async () => {
      const { method, url, rawHeaders } = req;
      received.push({ target, method, url, rawHeaders, body: await buffer(req) });
      const wish = answer(req, target);
      if (wish === "cut") req.socket.destroy();
      if (wish === "answer") res.writeHead(201, ["X-Twice", "one", "X-Twice", "two"]).end(`target ${target}`);
    })();
  });
  afterTest(() => close(started.server));
  return started;
}

interface Answer {
  readonly status: number | undefined;
  readonly rawHeaders: readonly string[];
  readonly body: string;
}

function send(
  path: string,
  {
    headers = {},
    body = "",
    method = "POST",
  }: { headers?: Record<string, string>; body?: string | Buffer; method?: string } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(proxy.url + path, { method, headers, agent: false }, (incoming) => {
      const { statusCode: status, rawHeaders } = incoming;
      resolve(text(incoming).then((read) => ({ status, rawHeaders, body: read })));
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

function valuesOf(rawHeaders: readonly string[], name: string): readonly string[] {
  return rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name);
}

describe("a round-robin proxy", () => {
  test("takes the targets in turn, and counts what each has answered", async () => {
    const bodies = [await send("/"), await send("/"), await send("/")].map(({ body }) => body);
    expect(bodies).toEqual(["target 0", "target 1", "target 0"]);
    expect(proxy.answered).toEqual([2, 1]);
  });

  test("hands on method, path, fields and body as they came", async () => {
    const body = Buffer.from([0, 255, 13, 10, 128]);
    const headers = {
      Host: "platform.example",
      "Content-Type": "application/json",
      "Content-Digest": "sha-256=:AAAA=:",
      "Signature-Input": 'sig1=("@method");created=1',
      "Content-Length": String(body.length),
    };
    await send("/API/v1/a%2Fb//c?x=%61", { headers, body, method: "PUT" });
    const [one] = received;
    expect(one).toMatchObject({ method: "PUT", url: "/API/v1/a%2Fb//c?x=%61" });
    expect(one?.body.equals(body)).toBe(true);
    for (const [name, value] of Object.entries(headers)) {
      expect(valuesOf(one!.rawHeaders, name.toLowerCase())).toEqual([value]);
    }
  });

  test("says itself who calls and by what, whatever a caller says", async () => {
    const headers = {
      "X-Forwarded-For": "198.51.100.1",
      "X-Forwarded-Proto": "https",
      "X-Forwarded-Host": "evil.example",
      Forwarded: "for=198.51.100.1",
      Connection: "close, X-Secret",
    };
    await send("/", { headers });
    const { rawHeaders } = received[0]!;
    expect(valuesOf(rawHeaders, "x-forwarded-for")).toEqual([callerAddress]);
    expect(valuesOf(rawHeaders, "x-forwarded-proto")).toEqual(["http"]);
    for (const name of ["x-forwarded-host", "forwarded"]) expect(valuesOf(rawHeaders, name)).toEqual([]);
    expect(valuesOf(rawHeaders, "connection")).toEqual(["close"]);
  });

  test("passes over a target that cannot be reached", async () => {
    await close(targets[0]!.server);
    const bodies = [await send("/", { body: "1" }), await send("/", { body: "2" })].map(({ body }) => body);
    expect(bodies).toEqual(["target 1", "target 1"]);
    expect(received.map(({ body }) => body.toString())).toEqual(["1", "2"]);
  });

  test("sends nothing twice: a target that has got a request and is gone is a 502", async () => {
    answer = () => "cut";
    const { status, rawHeaders } = await send("/", { body: "once" });
    expect(status).toBe(502);
    expect(valuesOf(rawHeaders, "retry-after")).toEqual(["1"]);
    expect(received).toHaveLength(1);
  });

  test("gives a request up when its caller has left", async () => {
    const gone: IncomingMessage[] = [];
    answer = (req) => {
      req.socket.once("close", () => gone.push(req));
      return "hang";
    };
    const { port, hostname } = new URL(proxy.url);
    const caller = connect(Number(port), hostname);
    caller.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    await eventually(() => received.length > 0);
    caller.destroy();
    await eventually(() => gone.length > 0);
    expect(gone).toHaveLength(1);
  });
});
