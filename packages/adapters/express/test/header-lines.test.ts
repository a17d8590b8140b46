import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { guard, guardErrors, type GuardRequest } from "@countersign/express";
import { describe, expect, jest, test } from "@jest/globals";
import express4 from "express4";
import { expressVersionsWith } from "@countersign/test-support/runs/express-versions.ts";
import { exchange } from "@countersign/test-support/servers/wire.ts";

const host = ["Host: platform.example", "Connection: close"];

// The guard's, or that of a version of Node that drops nothing but answers so itself, without a body.
const refusal = /"code":"header-lines-dropped"|^HTTP\/1\.1 431 .*\r\nConnection: close\r\n\r\n$/;

/** A request with `count` header lines, the last of which is `last`. */
function requestOf(count: number, last = "X: 1"): string {
  const filler = Array.from({ length: count - host.length - 1 }, () => "X: 1");
  return ["GET / HTTP/1.1", ...host, ...filler, last, "", ""].join("\r\n");
}

describe.each(expressVersionsWith(express4))("guard on %s", (_version, factory) => {
  async function ask(request: string, maxHeadersCount?: number): Promise<string> {
    const decide = jest.fn((req: GuardRequest) => expect(req.rawHeaders).toContain("Last"));
    const app = factory();
    app.use(guard("exampleGuard", decide), (_req, res) => void res.send("passed"));
    app.use(guardErrors());
    const server = createServer(app).listen(0, "127.0.0.1");
    if (maxHeadersCount !== undefined) server.maxHeadersCount = maxHeadersCount;
    await once(server, "listening");
    try {
      const answer = await exchange((server.address() as AddressInfo).port, request);
      const passed = answer.endsWith("passed");
      expect(decide).toHaveBeenCalledTimes(passed ? 1 : 0);
      if (!passed) expect(answer).toMatch(refusal);
      return passed ? "passed" : answer.slice("HTTP/1.1 ".length).slice(0, 3);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  }

  test.each<[string, number, number | undefined, string]>([
    ["the last line but one that Node keeps", 999, undefined, "passed"],
    ["the last line that Node keeps", 1_000, undefined, "431"],
    ["one line that Node drops", 1_001, undefined, "431"],
    ["many lines that Node drops", 3_000, undefined, "431"],
    ["fewer lines than the server's own maximum", 49, 50, "passed"],
    ["the server's own maximum", 50, 50, "431"],
    ["more than the server's own maximum", 300, 50, "431"],
    ["more than the usual maximum where the server has a higher one", 1_200, 1_500, "passed"],
    ["any number where the server drops none", 2_500, 0, "passed"],
  ])("answers a request with %s", async (_name, count, maxHeadersCount, answer) => {
    expect(await ask(requestOf(count, "Last: 1"), maxHeadersCount)).toBe(answer);
  });
});

describe("guard without a server", () => {
  test.each([
    ["no header lines", {}, undefined],
    ["no socket", { rawHeaders: ["Host", "a"] }, undefined],
    ["a socket without a server", { rawHeaders: ["Host", "a"], socket: {} }, undefined],
    ["too many header lines and no socket", { rawHeaders: Array(2_000).fill("a") }, "header-lines-dropped"],
  ])("judges an imitation of a request with %s", (_name, req, code) => {
    const next = jest.fn((error?: unknown) => (error as { code?: unknown } | undefined)?.code);
    guard("exampleGuard", () => undefined)(req as never, {} as never, next);
    expect(next.mock.results).toEqual([{ type: "return", value: code }]);
  });
});
