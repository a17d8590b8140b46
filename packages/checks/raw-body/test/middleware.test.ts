import { EventEmitter, once } from "node:events";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "@jest/globals";
import { capturedRawBody, captureRawBody, rawBody } from "@countersign/raw-body";
import type { GuardRequest, GuardResponse, Middleware } from "@countersign/express";
import express5 from "express";
import request from "supertest";
import { exchange, withServer } from "@countersign/test-support/servers/wire.ts";
import { appWith, expressVersions } from "./harness.ts";

describe.each(expressVersions)("rawBody on %s", (_version, express) => {
  test.each<[string, Buffer]>([
    ["pretty-printed JSON", Buffer.from('{\n  "amount" : { "value" : 10.10 }\n}\n')],
    ["unicode escapes", Buffer.from(String.raw`{"name":"M\u00fcller"}`)],
    ["a byte order mark", Buffer.from('\uFEFF{"a":1}')],
    ["emoji", Buffer.from('{"a":"🏦"}')],
    ["CRLF", Buffer.from('{\r\n"a":1}\r\n')],
    ["bytes that are no UTF-8", Buffer.from([0xff, 0x00, 0xc3, 0x28])],
    ["exactly the limit", Buffer.alloc(2048, 0x20)],
  ])("keeps %s byte for byte", async (_name, body) => {
    const { app, seen } = appWith(express, rawBody({ limit: "2kb" }));
    const answer = await withServer(app, (port) => post(port, body));
    expect(answer).toMatch(/^HTTP\/1.1 204/);
    expect(seen.bodies).toEqual([body]);
  });

  test("gives an empty buffer for a request without a body", async () => {
    const { app, seen } = appWith(express, rawBody());
    await request(app).post("/payouts").expect(204);
    expect(seen.bodies).toEqual([Buffer.alloc(0)]);
  });

  test("lets later guards share the bytes without another read", async () => {
    const { app, seen } = appWith(express, rawBody(), rawBody({ limit: 1 }));
    await request(app).post("/payouts").send("shared").expect(204);
    expect(seen.bodies).toEqual([Buffer.from("shared")]);
  });

  test("does not let a later write to req.rawBody change what guards see", async () => {
    const trusted: (Buffer | undefined)[] = [];
    const forge: Middleware = (req, _res, next) => {
      req.rawBody = Buffer.from("forged");
      trusted.push(capturedRawBody(req));
      next();
    };
    const { app } = appWith(express, rawBody(), forge);
    await request(app).post("/payouts").send("genuine").expect(204);
    expect(trusted).toEqual([Buffer.from("genuine")]);
  });

  test.each([
    ["gzip before chunked", "Transfer-Encoding: gzip, chunked\r\n"],
    ["identity before chunked", "Transfer-Encoding: identity, chunked\r\n"],
    ["two lines", "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"],
  ])("refuses a transfer coding: %s, also behind a parser that keeps the bytes", async (_name, lines) => {
    const parser = express5.json({ verify: captureRawBody });
    const json = "Host: a\r\nConnection: close\r\nContent-Type: application/json\r\n";
    const coded = `POST /payouts HTTP/1.1\r\n${json}${lines}\r\n2\r\n{}\r\n0\r\n\r\n`;
    for (const chain of [[rawBody()], [parser, rawBody()]]) {
      const { app, seen } = appWith(express, ...chain);
      const answer = await withServer(app, (port) => exchange(port, coded));
      expect(answer).toMatch(/^HTTP\/1.1 501 /);
      expect(seen).toEqual({ bodies: [], values: [], codes: ["transfer-coding-unsupported"] });
    }
  });

  test("accepts chunked in another case", async () => {
    const { app, seen } = appWith(express, rawBody());
    const chunked =
      "POST /payouts HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    expect(await withServer(app, (port) => exchange(port, chunked))).toMatch(/^HTTP\/1.1 204 /);
    expect(seen.bodies).toEqual([Buffer.from("{}")]);
  });

  test("accepts the coding that is none", async () => {
    const { app } = appWith(express, rawBody());
    await request(app).post("/payouts").set("Content-Encoding", "Identity").send("x").expect(204);
  });

  test("answers a Content-Length over the limit before a byte of the body is sent, and closes", async () => {
    const { app, seen } = appWith(express, rawBody({ limit: 10 }));
    const answer = await withServer(app, (port) => exchange(port, head("", 11)));
    expect(answer).toMatch(/^HTTP\/1.1 413 /);
    expect(answer).toMatch(/\r\nconnection: close\r\n/i);
    expect(seen.codes).toEqual(["body-too-large"]);
  });

  test("stops reading a chunked body at the limit, and closes", async () => {
    const { app, seen } = appWith(express, rawBody({ limit: 10 }));
    const chunked =
      "POST /payouts HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n12345678901\r\n";
    const answer = await withServer(app, (port) => exchange(port, chunked));
    expect(answer).toMatch(/^HTTP\/1.1 413 /);
    expect(answer).toMatch(/\r\nconnection: close\r\n/i);
    expect(seen.codes).toEqual(["body-too-large"]);
  });

  test("ends an aborted upload without an error or a handler", async () => {
    const errors: unknown[] = [];
    const server = new EventEmitter();
    const watch: Middleware = (req, _res, next) => {
      req.once("close", () => setImmediate(() => server.emit("client left")));
      next();
    };
    const { app, seen } = appWith(express, watch, rawBody());
    app.use((error: unknown, _req: unknown, _res: unknown, next: (error: unknown) => void) => {
      errors.push(error);
      next(error);
    });
    await withServer(app, async (port) => {
      const socket = connect(port, "127.0.0.1");
      await once(socket, "connect");
      socket.write(`${head("", 100)}half`);
      setTimeout(() => socket.destroy(), 30);
      await once(server, "client left");
    });
    expect(errors).toEqual([]);
    expect(seen).toEqual({ bodies: [], values: [], codes: [] });
  });

  test.each<[string, Middleware]>([
    ["express.json()", express.json()],
    ["express.text()", express.text({ type: "*/*" })],
    ["a handler that drained the stream", drain],
  ])("reports %s in front of it as a configuration error", async (_name, parser) => {
    const { app, seen } = appWith(express, parser, rawBody());
    const answer = await request(app).post("/payouts").type("application/json").send('{"a":1}').expect(500);
    expect(seen.codes).toEqual(["body-already-consumed"]);
    expect(seen.bodies).toEqual([]);
    expect(JSON.stringify(answer.body)).not.toContain("consumed");
  });

  test("takes the buffer of express.raw()", async () => {
    const { app, seen } = appWith(express, express.raw({ type: "*/*" }), rawBody());
    await request(app).post("/payouts").type("application/json").send('{"a":1}').expect(204);
    expect(seen.bodies).toEqual([Buffer.from('{"a":1}')]);
  });

  test("refuses the inflated buffer of express.raw()", async () => {
    const { app, seen } = appWith(express, express.raw({ type: "*/*" }), rawBody());
    const zipped = gzipSync('{"a":1}');
    const answer = await withServer(app, (port) => post(port, zipped, "Content-Encoding: gzip\r\n"));
    expect(answer).toMatch(/^HTTP\/1.1 415 /);
    expect(seen.codes).toEqual(["content-encoding-unsupported"]);
  });

  test("takes the bytes that express.json({ verify: captureRawBody }) saw", async () => {
    const { app, seen } = appWith(express, express.json({ verify: captureRawBody }), rawBody());
    await request(app).post("/payouts").type("application/json").send('{ "a": 1.0 }').expect(204);
    expect(seen.bodies).toEqual([Buffer.from('{ "a": 1.0 }')]);
    expect(seen.values).toEqual([{ a: 1 }]);
  });

  test("answers 415, not 403, where captureRawBody met an inflated body", async () => {
    const { app, seen } = appWith(express, express.json({ verify: captureRawBody }), rawBody());
    const answer = await withServer(app, (port) =>
      post(port, gzipSync('{"a":1}'), "Content-Type: application/json\r\nContent-Encoding: gzip\r\n"),
    );
    expect(answer).toMatch(/^HTTP\/1.1 415 /);
    expect(seen.codes).toEqual(["content-encoding-unsupported"]);
  });

  test("reads a body whose media type made express.json({ verify }) skip it", async () => {
    const { app, seen } = appWith(express, express.json({ verify: captureRawBody }), rawBody());
    await request(app).post("/payouts").type("text/plain").send("plain").expect(204);
    expect(seen.bodies).toEqual([Buffer.from("plain")]);
  });
});

function drain(req: GuardRequest, _res: GuardResponse, next: () => void): void {
  req.resume().once("end", () => next());
}

function head(lines: string, lengthBytes: number): string {
  return `POST /payouts HTTP/1.1\r\nHost: a\r\nContent-Length: ${lengthBytes}\r\n${lines}\r\n`;
}

function post(port: number, body: Buffer, lines = ""): Promise<string> {
  return exchange(
    port,
    Buffer.concat([Buffer.from(head(`${lines}Connection: close\r\n`, body.length)), body]),
  );
}
