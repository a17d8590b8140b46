// Behind signResponse() for a whole app most answers belong to requests that nobody has signed: they leave as they come.
import { once } from "node:events";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { guardErrors } from "@countersign/express";
import { signResponse } from "@countersign/http-signature-verify/sign";
import { verifyReceipt } from "countersign/client";
import { afterEach, describe, expect, test } from "@jest/globals";
import type { RequestHandler } from "express";
import {
  closeAll,
  exchange,
  keys,
  listen,
  path,
  platform,
  responseTo,
  signedRequest,
  signer,
  verifier,
  versions,
} from "./kit.ts";

afterEach(closeAll);

const large = Buffer.alloc(2_000_000, "0123456789abcdef");
const unsigned = { method: "GET", target: path, rawHeaders: [], body: "" };

describe.each(versions)("an answer behind signResponse that is not signed, on %s", (_name, framework) => {
  /** The port of an app whose every answer is behind signResponse(); `before` stands between the two. */
  function everywhere(handler: RequestHandler, ...before: readonly RequestHandler[]): Promise<number> {
    const app = framework();
    app.use(signResponse({ signer }), ...before);
    app.all(path, handler);
    app.use(guardErrors());
    return listen(app);
  }

  test.each<[string, RequestHandler]>([
    ["send", (_req, res) => void res.send(large)],
    [
      "a stream",
      (_req, res) => void Readable.from([large.subarray(0, 1_500_000), large.subarray(1_500_000)]).pipe(res),
    ],
    [
      "a stream of a known length",
      (_req, res) => void Readable.from([large]).pipe(res.set("Content-Length", "2000000")),
    ],
    [
      "writeHead and writes",
      (_req, res) =>
        void (res.writeHead(200, { "X-A": "1" }),
        res.write(large.subarray(0, 9)),
        res.end(large.subarray(9))),
    ],
  ])("leaves whole over the limit: %s", async (_kind, handler) => {
    const { status, headers, body } = await exchange(await everywhere(handler), unsigned);
    expect([status, body.equals(large), headers["signature"], headers["content-digest"]]).toEqual([
      200,
      true,
      undefined,
      undefined,
    ]);
  });

  test.each<[string, RequestHandler]>([
    ["flushHeaders", (_req, res) => (res.type("text/event-stream"), res.flushHeaders())],
    ["a first event", (_req, res) => void res.type("text/event-stream").write("data: 1\n\n")],
    [
      "writeHead and a first event",
      (_req, res) => void res.writeHead(200, { "Content-Type": "text/event-stream" }).write("data: 1\n\n"),
    ],
  ])("begins before it ends: %s", async (_kind, begin) => {
    let end = (): void => {};
    const port = await everywhere((req, res, next) => {
      begin(req, res, next);
      end = () => void res.end("data: 2\n\n");
    });
    const incoming = await responseTo(port, unsigned);
    expect(incoming.headers["content-type"]).toMatch("text/event-stream");
    end();
    expect(String(await buffer(incoming))).toMatch(/data: 2\n\n$/);
  });

  test("heeds the pace of its client", async () => {
    const returned: boolean[] = [];
    const port = await everywhere(async (_req, res) => {
      returned.push(res.write(large));
      await once(res, "drain");
      res.end();
    });
    expect((await exchange(port, unsigned)).body).toHaveLength(large.length);
    expect(returned).toEqual([false]);
  });

  test("leaves whole where its signature does not verify", async () => {
    const port = await everywhere(
      (_req, res) => void res.send(large),
      (req, res, next) => {
        verifier()(req, res, () => next());
      },
    );
    const stranger = signedRequest("{}", { privateKey: platform.privateKey });
    const { status, headers, body } = await exchange(port, stranger);
    expect([status, body.length, headers["signature"]]).toEqual([200, large.length, undefined]);
  });

  test("is 500 by the app's own error handler where Node refuses it", async () => {
    const port = await everywhere((req, res) => {
      res.statusMessage = decodeURIComponent(req.url.slice(req.url.indexOf("=") + 1));
      res.json({});
    });
    const target = `${path}?reason=%E2%82%AC`;
    expect((await exchange(port, { ...unsigned, target })).status).toBe(500);
  });

  test("is signed as before where the signature is verified behind, by the same app", async () => {
    const port = await everywhere((_req, res) => void res.json({ paid: true }), verifier());
    expect(verifyReceipt(await exchange(port, signedRequest()), { keys })).toMatchObject({ status: 200 });
  });
});
