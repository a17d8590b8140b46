import { Agent, type IncomingMessage } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import {
  buildPayoutRequest,
  createPayoutInstruction,
  generateKeyPair,
  PayoutSendError,
  sendPayout,
  type PayoutRequest,
} from "../../src/sandbox/index.ts";
import { platformHandler, startPlatform, type Received, type TestPlatform } from "./platform.ts";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { selfSignedCertificate } from "@countersign/test-support/servers/certificates.ts";

type SendOptions = Parameters<typeof sendPayout>[1];

const pair = generateKeyPair();
const keys = { [pair.keyid]: pair.publicKeyPem };

function request(
  url: string,
  changes: { target?: string; headers?: Record<string, string> } = {},
): PayoutRequest {
  const body = createPayoutInstruction();
  return buildPayoutRequest({ url, body, privateKey: pair.privateKeyPem, keyid: pair.keyid, ...changes });
}

async function failure(url: string, options?: SendOptions): Promise<PayoutSendError> {
  const error: unknown = await sendPayout(request(url), options).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(PayoutSendError);
  return error as PayoutSendError;
}

describe("sendPayout", () => {
  let platform: TestPlatform;
  beforeAll(async () => {
    platform = await startPlatform(keys);
  });
  afterEach(() => {
    platform.received.length = 0;
  });
  afterAll(() => platform.close());

  const lastReceived = (): Received => {
    const last = platform.received.at(-1);
    if (last === undefined) throw new Error("the platform received nothing");
    return last;
  };

  test("delivers what was signed, and the platform verifies it", async () => {
    const sent = request(platform.url);
    const answer = await sendPayout(sent);
    expect(answer).toMatchObject({ status: 200, body: '{"status":200}', bodyTruncated: false });
    expect(answer.headers["content-type"]).toBe("application/json");
    expect(answer.durationMs).toBeGreaterThan(0);
    expect(lastReceived()).toMatchObject({ signatureValid: true, digestValid: true, method: "POST" });
    expect(lastReceived().signatureBase).toBe(sent.signature.signatureBase);
    expect(lastReceived().body.equals(sent.bodyBytes)).toBe(true);
  });

  test("sends exactly the built header fields, Host and Content-Length", async () => {
    const sent = request(platform.url);
    await sendPayout(sent);
    expect(lastReceived().rawHeaders).toEqual([
      "Host",
      new URL(platform.url).host,
      ...Object.entries(sent.headers).flat(),
      "Content-Length",
      String(sent.bodyBytes.length),
      "Connection",
      "close",
    ]);
  });

  test("sends a given Host in place of the URL's", async () => {
    await sendPayout(request(platform.url, { headers: { Host: "platform.example" } }));
    expect(lastReceived().headers.host).toBe("platform.example");
    expect(lastReceived().rawHeaders.filter((name) => name.toLowerCase() === "host")).toHaveLength(1);
  });

  test.each([
    ["dot segments", "/api/../api/v1/transaction"],
    ["a double slash", "//evil.example/api/v1/transaction"],
    ["absolute form", "http://evil.example/api/v1/transaction"],
    ["percent-encoding", "/api%2Fv1/%74ransaction?x=%20"],
  ])("sends a target with %s as it is", async (_name, target) => {
    await sendPayout(request(platform.url, { target }));
    expect(lastReceived().target).toBe(target);
  });

  test("sends from a given local address", async () => {
    await sendPayout(request(platform.url), { localAddress: "127.0.0.2" });
    expect(lastReceived().remoteAddress).toBe("127.0.0.2");
  });

  test("sends through a given agent, on one connection", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const first = await sendPayout(request(platform.url), { agent });
    const second = await sendPayout(request(platform.url), { agent });
    agent.destroy();
    expect([first.headers.connection, second.headers.connection]).toEqual(["keep-alive", "keep-alive"]);
  });
});

describe("sendPayout without a proper answer", () => {
  async function serve(onData: (socket: Socket) => void): Promise<string> {
    const server = createServer((socket) => {
      afterTest(() => socket.destroy());
      socket.on("error", () => {});
      socket.once("data", () => onData(socket));
    });
    afterTest(() => server.close());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/pay`;
  }

  test("rejects with connection-refused where nothing listens", async () => {
    expect(await failure("http://127.0.0.1:1/pay")).toMatchObject({
      code: "connection-refused",
      message: expect.stringMatching(/nothing listens at http/),
    });
  });

  test("rejects with host-not-found for a name that does not exist", async () => {
    expect(await failure("http://platform.invalid/pay")).toMatchObject({ code: "host-not-found" });
  });

  const begun = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf";
  test.each<[string, string, (socket: Socket) => void]>([
    ["timed-out", "no answer comes", () => {}],
    ["timed-out", "the body of the answer never ends", (socket) => socket.write(begun)],
    ["connection-lost", "the answer breaks off", (socket) => socket.end(begun)],
    ["connection-lost", "the connection ends without an answer", (socket) => socket.destroy()],
  ])("rejects with %s when %s", async (code, _when, onData) => {
    // Only a time-out has to come soon: on a busy machine it could overtake another end.
    const timeoutMs = code === "timed-out" ? 100 : 30_000;
    const error = await failure(await serve(onData), { timeoutMs });
    expect(error).toMatchObject({ code });
    if (code === "timed-out") expect(error.message).toMatch(/within 100 ms/);
  });

  test("rejects with not-http when something else answers", async () => {
    const url = await serve((socket) => socket.end("SSH-2.0-OpenSSH\r\n"));
    expect(await failure(url)).toMatchObject({ code: "not-http" });
    expect(await failure(url.replace("http:", "https:"))).toMatchObject({ code: "not-http" });
  });

  test("rejects with local-address-unavailable for a foreign local address", async () => {
    const url = await serve(() => {});
    const code = "local-address-unavailable";
    expect(await failure(url, { localAddress: "192.0.2.1" })).toMatchObject({ code });
    expect(await failure(url, { localAddress: "::1" })).toMatchObject({ code });
  });

  test.each([0, Number.NaN, 2 ** 31])("refuses a time-out of %p", (timeoutMs) => {
    expect(() => sendPayout(request("http://127.0.0.1:1/pay"), { timeoutMs })).toThrow(TypeError);
  });

  test("keeps no more of the body than the limit and leaves", async () => {
    const url = await serve((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n${"x".repeat(100_000)}`);
    });
    const answer = await sendPayout(request(url), { bodyLimitBytes: 1000 });
    expect(answer).toMatchObject({ status: 200, body: "x".repeat(1000), bodyTruncated: true });
  });
});

describe("sendPayout over https", () => {
  const { key, cert } = selfSignedCertificate();
  const received: Received[] = [];
  const server = createHttpsServer({ key, cert }, (req: IncomingMessage, res) =>
    platformHandler(keys, received)(req, res),
  );
  let url = "";
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/pay`;
  });
  afterAll(() => {
    server.close();
  });

  test("is answered by a server whose issuer is given", async () => {
    expect(await sendPayout(request(url), { ca: cert })).toMatchObject({ status: 200 });
    expect(received.at(-1)?.signatureValid).toBe(true);
  });

  test("rejects with certificate-rejected otherwise, and sends nothing", async () => {
    received.length = 0;
    await expect(sendPayout(request(url))).rejects.toMatchObject({ code: "certificate-rejected" });
    expect(received).toEqual([]);
  });

  test("verifies even where NODE_TLS_REJECT_UNAUTHORIZED turns verification off", async () => {
    process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
    try {
      await expect(sendPayout(request(url))).rejects.toMatchObject({ code: "certificate-rejected" });
    } finally {
      delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
    }
  });
});
