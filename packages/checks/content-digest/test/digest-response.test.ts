import { createHash } from "node:crypto";
import { createReadStream, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream";
import { gunzipSync } from "node:zlib";
import {
  answerDigests,
  digestResponse,
  verifyContentDigest,
  verifyReprDigest,
} from "@countersign/content-digest";
import { memoryAnswerStore, memoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { rawBody } from "@countersign/raw-body";
import { describe, expect, jest, test } from "@jest/globals";
import compression from "compression";
import type { ErrorRequestHandler, Request, RequestHandler, Response } from "express";
import { createServer, request, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { expressVersions } from "./harness.ts";

type AnswerDigestOptions = NonNullable<Parameters<typeof digestResponse>[0]>;

interface Answer {
  readonly status: number;
  readonly rawHeaders: readonly string[];
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** As on the wire. */
  readonly body: Buffer;
}

async function ask(
  app: RequestHandler | ReturnType<(typeof expressVersions)[number][1]>,
  headers: Record<string, string> = {},
  method = "GET",
): Promise<Answer> {
  const server = createServer(app as never).listen(0, "127.0.0.1");
  await once(server, "listening");
  const req = request({
    port: (server.address() as AddressInfo).port,
    host: "127.0.0.1",
    method,
    headers,
    agent: false,
  });
  req.end(method === "POST" ? "{}" : undefined);
  const [res] = (await once(req, "response")) as [IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of res) chunks.push(chunk as Buffer);
  server.close();
  return {
    status: res.statusCode ?? 0,
    rawHeaders: res.rawHeaders,
    headers: res.headers,
    body: Buffer.concat(chunks),
  };
}

const sha256 = (bytes: string | Buffer): string =>
  `sha-256=:${createHash("sha256").update(bytes).digest("base64")}:`;
const sha512 = (bytes: string | Buffer): string =>
  `sha-512=:${createHash("sha512").update(bytes).digest("base64")}:`;
type Handler = (req: Request, res: Response) => unknown;
const both: AnswerDigestOptions = { fields: ["Content-Digest", "Repr-Digest"] };

describe.each(expressVersions)("digestResponse on %s", (_version, framework) => {
  const serve = (handler: Handler, options?: AnswerDigestOptions, ...before: readonly RequestHandler[]) => {
    const app = framework();
    app.use(...before, digestResponse(options));
    app.use((req: Request, res: Response) => void handler(req, res));
    return app;
  };

  test.each<[string, Handler, string]>([
    ["json", (_req, res) => res.json({ a: "ü" }), '{"a":"ü"}'],
    ["send", (_req, res) => res.status(404).send("nothing"), "nothing"],
    ["no content but 200", (_req, res) => res.end(), ""],
    ["pieces", (_req, res) => (res.write("61", "hex"), res.write(Buffer.from("b")), res.end("c")), "abc"],
    ["writeHead", (_req, res) => res.writeHead(200, { "Content-Type": "text/plain" }).end("abc"), "abc"],
    [
      "writeHead with a list",
      (_req, res) => res.writeHead(200, ["X-A", "1", "X-A", "2"] as never).end("abc"),
      "abc",
    ],
    [
      "an answer that says it is binary",
      (_req, res) => res.type("bin").send(Buffer.from([0, 255, 10])),
      "\u0000\u00ff\n",
    ],
  ])("gives the digest of %s", async (name, handler, text) => {
    const { headers, body, rawHeaders } = await ask(serve(handler, both));
    expect(body).toEqual(Buffer.from(text, name.includes("binary") ? "latin1" : "utf8"));
    expect(headers).toMatchObject({ "content-digest": sha256(body), "repr-digest": sha256(body) });
    // Read by the functions that check what a sender sends.
    expect(verifyContentDigest({ rawHeaders }, body)?.size).toBe(1);
    expect(verifyReprDigest({ rawHeaders }, body)?.size).toBe(1);
  });

  test("gives the digest of a file that is piped, and none of one over a megabyte, which leaves whole", async () => {
    const folder = mkdtempSync(join(tmpdir(), "digest-"));
    for (const [size, expected] of [
      [300_000, true],
      [1_048_576, true],
      [1_048_577, false],
      [3_000_000, false],
    ] as const) {
      const file = join(folder, `${size}`);
      const bytes = Buffer.alloc(size, "0123456789abcdef");
      writeFileSync(file, bytes);
      for (const handler of [
        (_req: Request, res: Response) => void pipeline(createReadStream(file), res, () => {}),
        (_req: Request, res: Response) => res.sendFile(file),
      ]) {
        const { headers, body } = await ask(serve(handler));
        expect(body.equals(bytes)).toBe(true);
        expect(headers["content-digest"]).toBe(expected ? sha256(bytes) : undefined);
      }
    }
    rmSync(folder, { recursive: true });
  });

  test.each<[string, Handler, string?]>([
    ["HEAD", (_req, res) => res.send("abc"), "HEAD"],
    ["204", (_req, res) => res.status(204).end()],
    ["304", (_req, res) => res.status(304).end()],
    ["205", (_req, res) => res.status(205).end()],
  ])("gives none where there is no content: %s", async (_name, handler, method = "GET") => {
    const { headers, body } = await ask(serve(handler, both), {}, method);
    expect([headers["content-digest"], headers["repr-digest"], body.length]).toEqual([
      undefined,
      undefined,
      0,
    ]);
  });

  test("gives a part its Content-Digest alone", async () => {
    const { status, headers } = await ask(
      serve((_req, res) => res.status(206).setHeader("Content-Range", "bytes 0-2/9").end("abc"), both),
    );
    expect([status, headers["content-digest"], headers["repr-digest"]]).toEqual([
      206,
      sha256("abc"),
      undefined,
    ]);
  });

  test("leaves a field that the handler has set, in either way", async () => {
    const set = await ask(
      serve((_req, res) => res.setHeader("content-digest", "mine=:YQ==:").end("abc"), both),
    );
    expect([set.headers["content-digest"], set.headers["repr-digest"]]).toEqual([
      "mine=:YQ==:",
      sha256("abc"),
    ]);
    const written = await ask(
      serve((_req, res) => res.writeHead(200, { "Repr-Digest": "mine=:YQ==:" }).end("abc"), both),
    );
    expect([written.headers["content-digest"], written.headers["repr-digest"]]).toEqual([
      sha256("abc"),
      "mine=:YQ==:",
    ]);
  });

  test.each<[string, Record<string, string>, AnswerDigestOptions, string | undefined, string | undefined]>([
    ["nothing", {}, both, sha256("abc"), sha256("abc")],
    ["sha-512", { "Want-Content-Digest": "sha-512=10, sha-256=1" }, both, sha512("abc"), sha256("abc")],
    [
      "sha-512 of the representation",
      { "Want-Repr-Digest": "sha-512=10" },
      both,
      sha256("abc"),
      sha512("abc"),
    ],
    ["what is not offered", { "Want-Content-Digest": "md5=10, sha-256=0" }, both, undefined, sha256("abc")],
    [
      "what is not offered here",
      { "Want-Content-Digest": "sha-512=9" },
      { algorithms: ["sha-256"] },
      undefined,
      undefined,
    ],
    ["what nobody can read", { "Want-Content-Digest": "sha-256=99" }, {}, undefined, undefined],
    ["nothing, with onlyWanted", {}, { ...both, onlyWanted: true }, undefined, undefined],
    [
      "one, with onlyWanted",
      { "Want-Content-Digest": "sha-256=3" },
      { ...both, onlyWanted: true },
      sha256("abc"),
      undefined,
    ],
    ["nothing, with sha-512 first", {}, { algorithms: ["sha-512", "sha-256"] }, sha512("abc"), undefined],
  ])("goes by what the request wants: %s", async (_name, headers, options, content, repr) => {
    const answer = await ask(
      serve((_req, res) => res.end("abc"), options),
      headers,
    );
    expect([answer.headers["content-digest"], answer.headers["repr-digest"]]).toEqual([content, repr]);
  });

  const text = "0123456789abcdef".repeat(500);
  const gzip = { "Accept-Encoding": "gzip" };

  test("in front of compression: the digest is of the bytes as they leave", async () => {
    const app = framework();
    app.use(digestResponse(both), compression({ threshold: 0 }));
    app.get("/", (_req: Request, res: Response) => void res.send(text));
    const { headers, body } = await ask(app, gzip);
    expect(headers["content-encoding"]).toBe("gzip");
    expect(gunzipSync(body).toString()).toBe(text);
    expect([headers["content-digest"], headers["repr-digest"]]).toEqual([sha256(body), sha256(body)]);
    const plain = await ask(app);
    expect([plain.headers["content-encoding"], plain.headers["content-digest"]]).toEqual([
      undefined,
      sha256(text),
    ]);
  });

  test("behind compression it says once that its digests are wrong", async () => {
    const warn = jest.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    const app = framework();
    app.use(compression({ threshold: 0 }), digestResponse());
    app.get("/", (_req: Request, res: Response) => void res.type("text").send(text));
    const { headers, body } = await ask(app, gzip);
    expect(headers["content-encoding"]).toBe("gzip");
    expect(headers["content-digest"]).not.toBe(sha256(body));
    await ask(app, gzip);
    const codes = warn.mock.calls.map(([, given]) => (given as { code?: unknown } | undefined)?.code);
    warn.mockRestore();
    expect(codes.filter((one) => one === "digest-of-other-bytes")).toHaveLength(1);
  });

  test("in front of idempotencyGuard: of what leaves, also of an answer that is given again or replaced", async () => {
    const app = framework();
    let status = 201;
    const guard = idempotencyGuard({
      store: memoryIdempotencyStore(),
      key: (req) => req.headers["x-key"],
      replay: { answers: memoryAnswerStore(), callers: "shared" },
    });
    app.use(
      digestResponse(),
      rawBody(),
      guard,
      (_req: Request, res: Response) => void res.status(status).send("paid"),
    );
    const replayed: unknown[] = [];
    for (const key of ["a", "a"]) {
      const { headers, body } = await ask(app, { "X-Key": key }, "POST");
      expect(headers["content-digest"]).toBe(sha256(body));
      replayed.push(headers["idempotency-replayed"]);
    }
    expect(replayed).toEqual([undefined, "true"]);
    status = 409;
    const warn = jest.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    const refused = await ask(app, { "X-Key": "b" }, "POST");
    warn.mockRestore();
    expect([refused.status, refused.headers["content-digest"]]).toEqual([500, sha256(refused.body)]);
  });

  test("lets an error handler answer in place of what was begun", async () => {
    const app = framework();
    app.use(digestResponse());
    app.get("/", (_req: Request, res: Response) => {
      res.write("begun");
      throw new Error("oops");
    });
    app.use(((_error, _req, res, _next) => void res.status(500).end("failed")) satisfies ErrorRequestHandler);
    const { status, body, headers } = await ask(app);
    expect([status, body.toString()]).toEqual([500, "failed"]);
    expect(headers["content-digest"]).toBe(sha256("failed"));
  });
});

test("answerDigests is the same of plain values", () => {
  const asking = { method: "GET", rawHeaders: ["Want-Content-Digest", "sha-512=1"] };
  const answer = { status: 200, rawHeaders: [], body: Buffer.from("abc") };
  expect(answerDigests(asking, answer)).toEqual({ "Content-Digest": sha512("abc") });
  expect(answerDigests({ ...asking, method: "HEAD" }, answer)).toEqual({});
});

test.each<[string, unknown, RegExp]>([
  ["no fields", { fields: [] }, /option fields must be/],
  ["another field", { fields: ["Digest"] }, /option fields must be/],
  ["a field twice", { fields: ["Repr-Digest", "Repr-Digest"] }, /option fields must be/],
  ["another algorithm", { algorithms: ["md5"] }, /option algorithms must be/],
  ["a text for onlyWanted", { onlyWanted: "yes" }, /option onlyWanted must be/],
  ["an unknown option", { limit: 1 }, /unknown option limit/],
])("throws on %s", (_name, options, message) => {
  expect(() => digestResponse(options as AnswerDigestOptions)).toThrow(TypeError);
  expect(() => digestResponse(options as AnswerDigestOptions)).toThrow(message);
});
