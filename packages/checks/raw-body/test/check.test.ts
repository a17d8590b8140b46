import { describe, expect, test } from "@jest/globals";
import { receivedRequest, type GuardRequest } from "@countersign/express";
import { capturedRawBody, captureRawBody, readBody } from "@countersign/raw-body";
import { codeOf } from "@countersign/test-support/runs/code-of.ts";
import { requestOf } from "./harness.ts";

const readRawBody = (req: GuardRequest, limitBytes: number): Promise<Buffer> =>
  readBody(receivedRequest(req), limitBytes);

describe("readBody", () => {
  test("reads once for callers at the same time, and for later ones", async () => {
    const req = requestOf({ "Content-Length": "5" }, ["ab", "cde"]);
    const [bytes, second] = await Promise.all([readRawBody(req, 100), readRawBody(req, 100)]);
    expect(second).toBe(bytes);
    expect(bytes).toEqual(Buffer.from("abcde"));
    expect(await readRawBody(req, 100)).toBe(bytes);
    expect(req.rawBody).toBe(bytes);
    expect(capturedRawBody(req)).toBe(bytes);
  });

  test("gives every caller the same refusal", async () => {
    const req = requestOf({}, ["too long"]);
    const outcomes = [codeOf(() => readRawBody(req, 3)), codeOf(() => readRawBody(req, 3))];
    expect(await Promise.all(outcomes)).toEqual(["413 body-too-large", "413 body-too-large"]);
    expect(await codeOf(() => readRawBody(req, 3))).toBe("413 body-too-large");
    expect(capturedRawBody(req)).toBeUndefined();
  });

  test.each([Number.NaN, 0, -1, 1.5, Number.POSITIVE_INFINITY])(
    "throws on a limit of %s bytes",
    async (limitBytes) => {
      await expect(readRawBody(requestOf({}, []), limitBytes)).rejects.toThrow(TypeError);
    },
  );

  test.each([
    ["shorter", ["abc"]],
    ["longer", ["abcdef"]],
  ])("refuses a body %s than Content-Length says", async (_name, chunks) => {
    const req = requestOf({ "Content-Length": "5" }, chunks);
    expect(await codeOf(() => readRawBody(req, 100))).toBe("400 body-length-mismatch");
  });

  test.each(["-1", "5, 5", "0x5", "", "1e9"])("refuses a Content-Length of %j", async (length) => {
    const req = requestOf({ "Content-Length": length }, ["abcde"]);
    expect(await codeOf(() => readRawBody(req, 100))).toBe("400 body-length-mismatch");
  });

  test.each(["", "identity, br"])("refuses a content coding of %j", async (coding) => {
    const req = requestOf({ "Content-Encoding": coding }, ["x"]);
    expect(await codeOf(() => readRawBody(req, 100))).toBe("415 content-encoding-unsupported");
  });

  test("refuses a coding that a platform shows in req.headers alone", async () => {
    const req = requestOf({}, ["x"]);
    req.headers["content-encoding"] = "gzip";
    expect(await codeOf(() => readRawBody(req, 100))).toBe("415 content-encoding-unsupported");
  });

  test("refuses a coding that somebody removed from req.headers", async () => {
    const req = requestOf({ "Content-Encoding": "gzip" }, ["x"]);
    delete req.headers["content-encoding"];
    expect(await codeOf(() => readRawBody(req, 100))).toBe("415 content-encoding-unsupported");
  });

  test("recognises a client that left before the read", async () => {
    const req = requestOf({ "Content-Length": "5" });
    req.destroy();
    expect(await codeOf(() => readRawBody(req, 100))).toBe("400 request-aborted");
  });

  test("recognises a client that leaves during the read", async () => {
    const req = requestOf({ "Content-Length": "5" });
    const read = codeOf(() => readRawBody(req, 100));
    req.push("ab");
    setImmediate(() => req.destroy());
    expect(await read).toBe("400 request-aborted");
  });

  test("reports a stream that was set to text", async () => {
    const req = requestOf({ "Content-Length": "1" }, ["x"]);
    req.setEncoding("utf8");
    expect(await codeOf(() => readRawBody(req, 100))).toBe("500 body-already-consumed");
  });

  test("names the remedy when a parser was first", async () => {
    const req = await consumed({ "Content-Length": "1" }, ["x"]);
    await expect(readRawBody(req, 100)).rejects.toThrow(/express\.json\(\{ verify: captureRawBody \}\)/);
  });
});

describe("readBody after somebody else read the stream", () => {
  test.each(["rawBody", "body"] as const)("takes a Buffer in req.%s", async (property) => {
    const req = await consumed({ "Content-Length": "3" }, ["abc"]);
    const kept = Buffer.from("abc");
    req[property] = kept;
    expect(await readRawBody(req, 3)).toBe(kept);
    expect(req.rawBody).toBe(kept);
  });

  test("prefers req.rawBody", async () => {
    const req = await consumed({}, ["abc"]);
    req.rawBody = Buffer.from("abc");
    req.body = Buffer.from("decoded");
    expect(await readRawBody(req, 100)).toBe(req.rawBody);
  });

  test.each<[string, unknown]>([
    ["a string", "abc"],
    ["an array of bytes", new Uint8Array([97])],
    ["an object", { type: "Buffer", data: [97] }],
    ["nothing", undefined],
  ])("does not take %s", async (_name, body) => {
    const req = await consumed({ "Content-Length": "3" }, ["abc"]);
    req.body = body;
    expect(await codeOf(() => readRawBody(req, 100))).toBe("500 body-already-consumed");
  });

  test("holds the kept bytes to the limit", async () => {
    const req = await consumed({ "Transfer-Encoding": "chunked" }, ["abcd"]);
    req.body = Buffer.from("abcd");
    expect(await codeOf(() => readRawBody(req, 3))).toBe("413 body-too-large");
  });

  test("holds the kept bytes to Content-Length", async () => {
    const req = await consumed({ "Content-Length": "4" }, ["abcd"]);
    req.body = Buffer.from("abc");
    expect(await codeOf(() => readRawBody(req, 100))).toBe("400 body-length-mismatch");
  });

  test("reads the stream, not req.body, while the stream is untouched", async () => {
    const req = requestOf({ "Content-Length": "4" }, ["wire"]);
    req.body = Buffer.from("else");
    expect(await readRawBody(req, 100)).toEqual(Buffer.from("wire"));
  });

  test.each([
    ["without a length", {}],
    ["of length 0", { "Content-Length": "0" }],
  ])("knows that a request %s was empty", async (_name, headers) => {
    const req = await consumed(headers, []);
    expect(await readRawBody(req, 100)).toEqual(Buffer.alloc(0));
  });

  test("does not take a chunked body for empty", async () => {
    const req = await consumed({ "Transfer-Encoding": "chunked" }, []);
    expect(await codeOf(() => readRawBody(req, 100))).toBe("500 body-already-consumed");
  });

  test("does not take an HTTP/2 body without a length for empty", async () => {
    const req = await consumed({}, []);
    req.httpVersionMajor = 2;
    expect(await codeOf(() => readRawBody(req, 100))).toBe("500 body-already-consumed");
  });

  test("believes the mark of an Express 4 parser", async () => {
    const req = Object.assign(requestOf({ "Content-Length": "3" }, ["abc"]), { _body: true });
    expect(await codeOf(() => readRawBody(req, 100))).toBe("500 body-already-consumed");
  });
});

describe("captureRawBody", () => {
  test("keeps the very buffer and the first one", () => {
    const req = requestOf({});
    const buffer = Buffer.from("first");
    captureRawBody(req, undefined, buffer, "utf-8");
    captureRawBody(req, undefined, Buffer.from("second"), "utf-8");
    expect(capturedRawBody(req)).toBe(buffer);
    expect(req.rawBody).toBe(buffer);
  });

  test("ignores decoded bytes and what is no Buffer, without a throw", () => {
    const coded = requestOf({ "Content-Encoding": "gzip" });
    captureRawBody(coded, undefined, Buffer.from("inflated"), "utf-8");
    const text = requestOf({});
    captureRawBody(text, undefined, "text" as unknown as Buffer, "utf-8");
    expect([capturedRawBody(coded), capturedRawBody(text)]).toEqual([undefined, undefined]);
  });
});

async function consumed(
  headers: Readonly<Record<string, string>>,
  chunks: readonly string[],
): Promise<ReturnType<typeof requestOf>> {
  const req = requestOf(headers, chunks);
  await req.toArray();
  return req;
}
