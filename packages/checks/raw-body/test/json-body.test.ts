import { describe, expect, test } from "@jest/globals";
import { captureRawBody, jsonBody, rawBody } from "@countersign/raw-body";
import type { GuardRequest, GuardResponse } from "@countersign/express";
import request from "supertest";
import { exchange, withServer } from "@countersign/test-support/servers/wire.ts";
import { appWith, expressVersions } from "./harness.ts";

describe("jsonBody as built", () => {
  test.each([0, 513, 1.5, "64"])("throws on a maxDepth of %j", (maxDepth) => {
    expect(() => jsonBody({ maxDepth: maxDepth as number })).toThrow(/^jsonBody: option maxDepth/);
  });

  test("throws on an unknown option", () => {
    expect(() => jsonBody({ limit: 1 } as object)).toThrow(/unknown option limit/);
  });
});

describe.each(expressVersions)("jsonBody on %s", (_version, express) => {
  test.each([
    ["application/json"],
    ["application/json; charset=utf-8"],
    ["application/json;charset=UTF-8"],
    ['Application/JSON ; charset="utf-8"'],
  ])("accepts %s", async (mediaType) => {
    const { app, seen } = appWith(express, rawBody(), jsonBody());
    await withServer(app, (port) => send(port, [mediaType], '{"a":[1,"x",null]}'));
    expect(seen).toMatchObject({ values: [{ a: [1, "x", null] }], codes: [] });
  });

  test.each([
    ["none", []],
    ["another type", ["text/plain"]],
    ["a suffix", ["application/problem+json"]],
    ["another charset", ["application/json; charset=utf-16"]],
    ["a charset twice", ["application/json; charset=utf-8; charset=utf-16"]],
    ["another parameter", ["application/json; profile=x"]],
    ["a parameter before it", ["application/json; q=1; charset=utf-8"]],
    ["two values in one line", ["application/json, text/plain"]],
    ["two lines", ["application/json", "text/plain"]],
    ["the same line twice", ["application/json", "application/json"]],
  ])("refuses a media type: %s", async (_name, mediaTypes) => {
    const { app, seen } = appWith(express, rawBody(), jsonBody());
    const answer = await withServer(app, (port) => send(port, mediaTypes, "{}"));
    expect(answer).toMatch(/^HTTP\/1.1 415 /);
    expect(seen).toMatchObject({ values: [], codes: ["media-type-unsupported"] });
  });

  test("parses the verified bytes again where the app parsed them first", async () => {
    const { app, seen } = appWith(
      express,
      express.json({ verify: captureRawBody }),
      swap,
      rawBody(),
      jsonBody(),
    );
    await request(app).post("/payouts").type("application/json").send('{"a":1}').expect(204);
    expect(seen.values).toEqual([{ a: 1 }]);
  });

  test("refuses a duplicate key that the app's own parser let through", async () => {
    const { app, seen } = appWith(express, express.json({ verify: captureRawBody }), jsonBody());
    await request(app).post("/payouts").type("application/json").send('{"a":1,"a":2}').expect(400);
    expect(seen.codes).toEqual(["json-duplicate-key"]);
  });

  test("reports missing bytes as a configuration error", async () => {
    const { app, seen } = appWith(express, jsonBody());
    await request(app).post("/payouts").type("application/json").send("{}").expect(500);
    expect(seen.codes).toEqual(["raw-body-missing"]);
  });

  test("answers malformed JSON without a word of the parser or of the body", async () => {
    const { app, seen } = appWith(express, rawBody(), jsonBody());
    const answer = await request(app)
      .post("/payouts")
      .type("application/json")
      .send('{"iban":DE89}')
      .expect(400);
    expect(answer.body).toEqual({
      type: "about:blank",
      title: "Bad Request",
      status: 400,
      code: "json-invalid",
    });
    expect(seen.codes).toEqual(["json-invalid"]);
  });

  test("honours maxDepth", async () => {
    const { app, seen } = appWith(express, rawBody(), jsonBody({ maxDepth: 2 }));
    await request(app).post("/payouts").type("application/json").send("[[1]]").expect(204);
    await request(app).post("/payouts").type("application/json").send("[[[1]]]").expect(400);
    expect(seen.codes).toEqual(["json-too-deep"]);
  });
});

function swap(req: GuardRequest, _res: GuardResponse, next: () => void): void {
  req.body = { swapped: true };
  next();
}

function send(port: number, mediaTypes: readonly string[], body: string): Promise<string> {
  const lines = mediaTypes.map((mediaType) => `Content-Type: ${mediaType}\r\n`).join("");
  return exchange(
    port,
    `POST /payouts HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ${body.length}\r\n${lines}\r\n${body}`,
  );
}
