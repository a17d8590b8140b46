// What leaves is what was signed, whatever its app does behind the end; and what cannot leave is 500.
import { Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { gunzipSync } from "node:zlib";
import type { Middleware } from "@countersign/express";
import { signResponse } from "@countersign/http-signature-verify/sign";
import { verifyReceipt } from "countersign/client";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import compression from "compression";
import type { RequestHandler } from "express";
import {
  closeAll,
  exchange,
  keys,
  listen,
  path,
  serve,
  signedRequest,
  signer,
  verifier,
  versions,
} from "./kit.ts";
import { hearNotices } from "../../packages/checks/http-signature-verify/test/live-keys-bench.ts";

type SignResponseOptions = Parameters<typeof signResponse>[0];

let notices: ReturnType<typeof hearNotices>;
beforeEach(() => {
  notices = hearNotices();
});
afterEach(async () => {
  notices.stop();
  await closeAll();
});

describe.each(versions)("an answer that signResponse signs, on %s", (_name, framework) => {
  test.each<[string, RequestHandler, number]>([
    ["the status behind send()", (_req, res) => (res.send("paid"), void (res.statusCode = 500)), 200],
    [
      "the status behind end()",
      (_req, res) => (res.status(201).end("paid"), void (res.statusCode = 200)),
      201,
    ],
    [
      "fields behind end()",
      (_req, res) => (res.type("text").end("paid"), res.type("json"), void res.set("Location", "/elsewhere")),
      200,
    ],
    ["the status behind a write", (_req, res) => (res.write("pa"), void res.status(201).end("id")), 200],
    [
      "the status behind writeHead()",
      (_req, res) => (res.writeHead(202), (res.statusCode = 200), void res.end("paid")),
      202,
    ],
    [
      "the error handler behind send()",
      (_req, res, next) => (res.send("paid"), next(new Error("late"))),
      200,
    ],
  ])("leaves with the head that was signed: %s", async (_kind, handler, status) => {
    const got = await exchange(await serve(framework, handler), signedRequest());
    expect([got.status, String(got.body), got.headers.location]).toEqual([status, "paid", undefined]);
    expect(verifyReceipt(got, { keys })).toMatchObject({ status });
  });

  test.each<[string, string, RequestHandler]>([
    ["HEAD and send", "HEAD", (_req, res) => void res.send("paid")],
    ["HEAD and writes", "HEAD", (_req, res) => (res.write("pa"), void res.end("id"))],
    [
      "HEAD and writes over the limit",
      "HEAD",
      (_req, res) => (res.write("x".repeat(40)), void res.end("id")),
    ],
    ["204 and writes", "POST", (_req, res) => (res.status(204).write("pa"), void res.end("id"))],
    ["304 and an end", "POST", (_req, res) => void res.status(304).end("paid")],
  ])("is a receipt of the content that leaves, where there is none: %s", async (_kind, method, handler) => {
    const port = await serve(framework, handler, { limit: 32 });
    const got = await exchange(port, signedRequest(method === "HEAD" ? "" : "{}", { method }));
    expect(got.body).toHaveLength(0);
    expect(verifyReceipt(got, { keys })).toMatchObject({ status: got.status });
    expect(notices.heard).toEqual([]);
  });

  test.each<[string, RequestHandler, string]>([
    [
      "a reason of other characters",
      (_req, res) => ((res.statusMessage = "\u20ac"), void res.json({ paid: true })),
      "ERR_INVALID_CHAR",
    ],
    [
      "such a reason by writeHead",
      (_req, res) => void res.writeHead(200, "\u20ac").end("paid"),
      "ERR_INVALID_CHAR",
    ],
  ])("is 500 where Node refuses to send it: %s", async (_kind, handler, code) => {
    const port = await serve(framework, handler);
    const { status, body } = await exchange(port, signedRequest());
    expect(status).toBe(500);
    expect(String(body)).not.toContain("paid");
    expect(notices.heard).toEqual([
      expect.objectContaining({
        guard: "signResponse",
        code: "answer-unsendable",
        error: expect.objectContaining({ code }),
      }),
    ]);
    // The process goes on.
    expect((await exchange(port, signedRequest())).status).toBe(500);
  });

  test.each<[string, Partial<SignResponseOptions>]>([
    [
      "a clock that throws",
      {
        clock: () => {
          throw new Error("no time");
        },
      },
    ],
    ["a clock that gives no number", { clock: () => Number.NaN }],
  ])("is 503 with %s", async (_kind, options) => {
    const port = await serve(framework, (_req, res) => void res.json({}), options);
    expect((await exchange(port, signedRequest())).status).toBe(503);
    expect(notices.heard).toEqual([expect.objectContaining({ code: "signing-failed" })]);
  });

  const gzip = ["Accept-Encoding", "gzip"];
  const text = "0123456789abcdef".repeat(500);

  function compressed(order: (receipts: Middleware) => readonly RequestHandler[]): Promise<number> {
    const app = framework();
    app.use(...order(signResponse({ signer })), verifier());
    app.post(path, (_req, res) => void res.type("text").send(text));
    return listen(app);
  }

  test("is a receipt of the bytes as they leave, in front of compression", async () => {
    const port = await compressed((receipts) => [receipts, compression({ threshold: 0 })]);
    const got = await exchange(port, signedRequest("{}", { fields: gzip }));
    expect([got.headers["content-encoding"], String(gunzipSync(got.body))]).toEqual(["gzip", text]);
    expect(verifyReceipt(got, { keys })).toMatchObject({ status: 200 });
    const plain = await exchange(port, signedRequest());
    expect([plain.headers["content-encoding"], String(plain.body)]).toEqual([undefined, text]);
    expect(verifyReceipt(plain, { keys })).toMatchObject({ status: 200 });
    expect(notices.heard).toEqual([]);
  });

  test("says once that it is no receipt behind compression", async () => {
    const warn = jest.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    const port = await compressed((receipts) => [compression({ threshold: 0 }), receipts]);
    for (let round = 0; round < 2; round += 1) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const got = await exchange(port, signedRequest("{}", { fields: gzip }));
      expect(() => verifyReceipt(got, { keys })).toThrow(
        expect.objectContaining({ code: "component-required" }),
      );
    }
    warn.mockRestore();
    expect(notices.heard).toEqual([
      expect.objectContaining({ guard: "signResponse", code: "digest-of-other-bytes" }),
    ]);
  });

  test("is 500 as soon as it is over the limit, although it never ends, and its source is let go", async () => {
    let source: Readable | undefined;
    const port = await serve(
      framework,
      (_req, res) => {
        source = Readable.from(endless());
        source.pipe(res);
      },
      { limit: "100kb" },
    );
    const { status, headers } = await exchange(port, signedRequest());
    expect([status, headers["signature"]]).toEqual([500, undefined]);
    expect(notices.heard).toEqual([expect.objectContaining({ code: "answer-too-large" })]);
    expect(source?.listenerCount("data")).toBe(0);
  });

  test("hears of a write behind its end as Node has it, and leaves once", async () => {
    const heard: unknown[] = [];
    const port = await serve(framework, (_req, res) => {
      const keep = (error?: Error | null): void =>
        void heard.push((error as { code?: unknown } | null)?.code);
      res.end("paid");
      res.write("twice", keep);
      res.end("twice", keep as never);
    });
    const got = await exchange(port, signedRequest());
    expect([String(got.body), verifyReceipt(got, { keys }).status]).toEqual(["paid", 200]);
    expect(heard).toEqual(["ERR_STREAM_WRITE_AFTER_END", "ERR_STREAM_ALREADY_FINISHED"]);
  });
});

async function* endless(): AsyncGenerator<Buffer> {
  for (;;) {
    yield Buffer.alloc(16_384);
    // oxlint-disable-next-line no-await-in-loop -- as a source that reads
    await setImmediate();
  }
}
