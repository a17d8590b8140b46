import { receivedRequest } from "@countersign/fetch";
import { describe, expect, test } from "@jest/globals";

describe("receivedRequest", () => {
  test.each([
    ["/a", "/a"],
    ["/a?b=1", "/a?b=1"],
    ["/a?", "/a?"],
    ["/a#", "/a#"],
    ["/a#b", "/a#b"],
    ["?a", "/?a"],
    ["", "/"],
    ["//a", "//a"],
  ])("takes the target of %s as it stands", (path, target) => {
    expect(receivedRequest(new Request(`https://platform.example${path}`)).target).toBe(target);
  });

  test("takes what a server says of the connection", () => {
    const info = { clientAddress: "192.0.2.1", scheme: "http", target: "/a/../b" } as const;
    expect(receivedRequest(new Request("https://platform.example/b"), info)).toMatchObject(info);
  });

  test("knows no address by itself, and takes the scheme of the URL", () => {
    const { clientAddress, scheme } = receivedRequest(new Request("https://platform.example/"));
    expect([clientAddress, scheme]).toEqual([undefined, "https"]);
    expect(receivedRequest(new Request("http://platform.example/")).scheme).toBe("http");
  });

  // Of `POST https://…` over plain TCP @hono/node-server makes such a URL.
  test.each([
    ["rawHeaders", { rawHeaders: [] }],
    ["target", { target: "https://platform.example/" }],
    ["both", { rawHeaders: [], target: "/" }],
  ])("with %s does not believe the scheme of the URL", (_name, info) => {
    const received = (more: object): string =>
      receivedRequest(new Request("https://platform.example/"), { ...info, ...more }).scheme;
    expect([received({}), received({ scheme: "https" })]).toEqual(["http", "https"]);
  });

  test.each<[string, string[], string[] | undefined]>([
    ["two Host lines", [], ["Host", "a.example", "host", "b.example"]],
    ["one Host line twice", [], ["Host", "a.example", "Host", "a.example"]],
    ["two Host lines that Headers has joined", ["a.example", "b.example"], undefined],
  ])("refuses %s", (_name, hosts, rawHeaders) => {
    const request = new Request("https://platform.example/");
    for (const host of hosts) request.headers.append("Host", host);
    expect(() => receivedRequest(request, { rawHeaders })).toThrow(
      expect.objectContaining({ status: 400, code: "host-repeated" }),
    );
  });

  test.each([
    ["a context", { req: { raw: new Request("https://platform.example/") }, env: {} }],
    [
      "a framework's own request",
      { url: "https://platform.example/", method: "POST", raw: {}, header: () => "" },
    ],
    ["nothing", undefined],
  ])("refuses %s in place of the Request", (_name, value) => {
    expect(() => receivedRequest(value as never)).toThrow(
      new TypeError("the first argument has to be the Request itself, of Hono c.req.raw"),
    );
  });

  test("is the same one each time, with one body", async () => {
    const request = new Request("https://platform.example/", { method: "POST", body: "{}" });
    const received = receivedRequest(request);
    expect(receivedRequest(request)).toBe(received);
    expect(await received.body(10)).toBe(await received.body(1));
  });

  // The source of a body that a client has left, and one that throws: a rejection that nobody hears would end the process.
  test("refuses a body over the limit, whose source fails when it is given up", async () => {
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(64)),
      cancel: () => {
        throw new Error("source");
      },
    });
    const init = {
      method: "POST",
      body,
      duplex: "half" as const,
      headers: { "Transfer-Encoding": "chunked" },
    };
    const read = receivedRequest(new Request("https://platform.example/", init)).body(100);
    await expect(read).rejects.toMatchObject({ code: "body-too-large" });
    await new Promise((resolve) => void setImmediate(resolve));
  });

  // As a server makes it of an HTTP/2 stream that RST_STREAM has cut: the body ends, and the signal tells a little later.
  test.each<[string, Record<string, string>, string]>([
    ["refuses a body that was cut, where its end alone says that it is whole", {}, "request-aborted"],
    [
      "takes a body of the length that it says, although the client has left",
      { "Content-Length": "2" },
      "{}",
    ],
    ["takes a body in chunks, whose last one has come", { "Transfer-Encoding": "chunked" }, "{}"],
  ])("%s", async (_title, headers, outcome) => {
    const left = new AbortController();
    const request = new Request("https://platform.example/", {
      method: "POST",
      body: "{}",
      signal: left.signal,
    });
    const read = receivedRequest(request, { rawHeaders: Object.entries(headers).flat() }).body(10);
    setImmediate(() => left.abort());
    const seen = await read.then(String, ({ code }: { readonly code?: unknown }) => code);
    expect(seen).toBe(outcome);
  });

  test("takes the header lines as the server has received them", () => {
    const rawHeaders = ["Content-Type", "text/plain", "content-type", "application/json"];
    const request = new Request("https://platform.example/", { headers: { "Content-Type": "a/b" } });
    expect(receivedRequest(request, { rawHeaders }).rawHeaders).toEqual(rawHeaders);
  });

  test("refuses as many header lines as Node keeps", () => {
    const received = (length: number) => () =>
      receivedRequest(new Request("https://platform.example/"), { rawHeaders: Array(length).fill("a") });
    expect(received(1_998)).not.toThrow();
    expect(received(2_000)).toThrow(expect.objectContaining({ status: 431, code: "header-lines-dropped" }));
  });
});
