import { randomUUID } from "node:crypto";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { createServer, request as httpRequest, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isGuardError, noticeChannelName, type GuardNotice } from "@countersign/core";
import { guardErrors } from "@countersign/express";
import { ipAllowlist, type IpAllowlistOptions } from "@countersign/ip-allowlist";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import express, { type Express } from "express";
import express4 from "express4";
import { expressVersionsWith } from "@countersign/test-support/runs/express-versions.ts";
import supertest from "supertest";

const loopback = ["127.0.0.1", "::1"];
let codes: string[] = [];
let messages: string[] = [];
let notices: string[] = [];
let warnings: string[] = [];

const onNotice = (message: unknown): void => {
  notices.push((message as GuardNotice).code);
};

const collectCode = (error: unknown): void => {
  if (!isGuardError(error)) return;
  codes.push(error.code);
  messages.push(error.message);
};

beforeEach(() => {
  codes = [];
  messages = [];
  notices = [];
  warnings = [];
  subscribe(noticeChannelName, onNotice);
  jest.spyOn(process, "emitWarning").mockImplementation(((_text: unknown, options: { code: string }) => {
    warnings.push(options.code);
  }) as typeof process.emitWarning);
});

afterEach(() => {
  unsubscribe(noticeChannelName, onNotice);
  jest.restoreAllMocks();
});

function build(factory: typeof express, options: IpAllowlistOptions, trustProxy?: unknown): Express {
  const app = factory();
  if (trustProxy !== undefined) app.set("trust proxy", trustProxy);
  app.use(ipAllowlist(options));
  app.get("/", (_req, res) => {
    res.send("paid");
  });
  app.use(guardErrors({ onReject: collectCode }));
  return app;
}

function get(app: Express, forwardedFor?: string): supertest.Test {
  const request = supertest(app).get("/");
  return forwardedFor === undefined ? request : request.set("X-Forwarded-For", forwardedFor);
}

describe.each(expressVersionsWith(express4))("ipAllowlist on %s", (_version, factory) => {
  test("passes a listed peer in silence", async () => {
    await get(build(factory, { allow: loopback })).expect(200, "paid");
    expect([codes, warnings, notices]).toEqual([[], [], []]);
  });

  test("answers 401 to an unlisted peer", async () => {
    await get(build(factory, { allow: ["203.0.113.0/24"] }))
      .expect(401)
      .expect("Content-Type", "application/problem+json");
    expect(codes).toEqual(["ip-not-allowed"]);
  });

  test("answers the status of the option", async () => {
    await get(build(factory, { allow: ["203.0.113.1"], status: 403 })).expect(403);
    expect(codes).toEqual(["ip-not-allowed"]);
  });

  test("gives the same 401 to an unlisted address, to no address and to a proxy", async () => {
    const allow = ["198.51.100.7", ...loopback];
    const app = build(factory, { allow }, ["127.0.0.1", "::1"]);
    const answers = await Promise.all([get(app, "203.0.113.9"), get(app, "unknown"), get(app)]);
    const seen = answers.map(({ status, text, headers }) => ({
      status,
      text,
      headers: { ...headers, date: "" },
    }));
    expect(seen[0]?.status).toBe(401);
    expect(seen[1]).toEqual(seen[0]);
    expect(seen[2]).toEqual(seen[0]);
    codes.sort();
    expect(codes).toEqual(["ip-is-proxy", "ip-not-allowed", "ip-unknown"]);
  });

  test.each([
    ["a listed client", "198.51.100.7", 200, undefined],
    ["a listed client behind the caller's own text", "203.0.113.9, 198.51.100.7", 200, undefined],
    ["an IPv4-mapped client", "::ffff:198.51.100.7", 200, undefined],
    ["an IPv4-mapped client in hexadecimal", "::ffff:c633:6407", 200, undefined],
    ["a listed IPv6 client", "2001:db8::7", 200, undefined],
    ["a listed address written by an unlisted client", "198.51.100.7, 203.0.113.9", 401, "ip-not-allowed"],
    ["an unlisted client", "203.0.113.9", 401, "ip-not-allowed"],
    ["an IPv4 client of an IPv6 rule", "32.1.13.184", 401, "ip-not-allowed"],
    ["a word", "unknown", 401, "ip-unknown"],
    ["an address with a port", "198.51.100.7:5555", 401, "ip-unknown"],
    ["an IPv6 address with a port", "[2001:db8::7]:443", 401, "ip-unknown"],
    ["a zone id", "2001:db8::7%1", 401, "ip-unknown"],
    ["no client", undefined, 401, "ip-not-allowed"],
  ])("decides about %s that a trusted proxy names", async (_name, forwardedFor, status, code) => {
    const allow = ["198.51.100.7", "2001:db8::/32", "::/64"];
    const app = build(factory, { allow }, "loopback");
    await get(app, forwardedFor).expect(status);
    expect(codes).toEqual(code === undefined ? [] : [code]);
    expect(warnings).toEqual([]);
  });

  test.each([
    ["true", true],
    ["a function that trusts everything", () => true],
    ["a hop count without end", Infinity],
    ["a hop count of 100", 100],
    ["both halves of IPv4", "0.0.0.0/1, 128.0.0.0/1"],
    ["both halves of IPv6", ["::/1", "8000::/1"]],
  ])("refuses everything with 500 while trust proxy is %s", async (_name, trustProxy) => {
    const app = build(factory, { allow: ["0.0.0.0/1", "::1"] }, trustProxy);
    await get(app).expect(500);
    await get(app, "127.0.0.1").expect(500);
    expect(codes).toEqual(["trust-proxy-unsafe", "trust-proxy-unsafe"]);
    expect(warnings).toEqual(["trust-proxy-unsafe"]);
    expect(notices).toEqual(["trust-proxy-unsafe"]);
  });

  test.each([
    ["one hop", 1, "198.51.100.7", 200],
    ["one hop, with more text in front", 1, "203.0.113.9, 198.51.100.7", 200],
    ["one hop, the text in front listed", 1, "198.51.100.7, 203.0.113.9", 401],
    ["two hops", 2, "198.51.100.7, 10.0.0.5", 200],
    ["a function of one hop", (_address: string, hop: number) => hop < 1, "198.51.100.7", 200],
    ["a list of proxies", "127.0.0.1, ::1, ::ffff:127.0.0.1, 10.0.0.5", "198.51.100.7, 10.0.0.5", 200],
    ["named ranges", "loopback, linklocal, uniquelocal", "198.51.100.7", 200],
  ])("accepts trust proxy as %s", async (_name, trustProxy, forwardedFor, status) => {
    await get(build(factory, { allow: ["198.51.100.7"] }, trustProxy), forwardedFor).expect(status);
    expect(warnings).toEqual([]);
  });

  test("refuses a client that fewer proxies named than trust proxy counts, and warns once", async () => {
    const app = build(factory, { allow: ["198.51.100.7"] }, 2);
    await get(app, "198.51.100.7").expect(401);
    await get(app, " , 198.51.100.7").expect(401);
    expect(codes).toEqual(["ip-is-proxy", "ip-is-proxy"]);
    expect(warnings).toEqual(["ip-is-proxy"]);
  });

  test("judges by the setting that a mounted app inherits", async () => {
    const app = factory();
    app.set("trust proxy", "loopback");
    app.use("/platform", build(factory, { allow: ["198.51.100.7"] }));
    await supertest(app).get("/platform").set("X-Forwarded-For", "198.51.100.7").expect(200);
    app.enable("trust proxy");
    await supertest(app).get("/platform").set("X-Forwarded-For", "198.51.100.7").expect(500);
  });

  test("warns once of a listed proxy, and refuses what it forwards without naming the client", async () => {
    const app = build(factory, { allow: [...loopback, "198.51.100.7"] }, "loopback");
    await get(app, "198.51.100.7").expect(200);
    expect(warnings).toEqual(["proxy-in-allowlist"]);
    expect(notices).toEqual(["proxy-in-allowlist"]);
    await get(app).expect(401);
    await get(app, "127.0.0.1").expect(401);
    await get(app, "203.0.113.9").expect(401);
    expect(codes).toEqual(["ip-is-proxy", "ip-is-proxy", "ip-not-allowed"]);
    expect(warnings).toEqual(["proxy-in-allowlist", "ip-is-proxy"]);
  });

  test("ignores X-Forwarded-For without trust and warns once", async () => {
    const app = build(factory, { allow: ["198.51.100.7"] });
    await get(app, "198.51.100.7").expect(401);
    await get(app, "198.51.100.7").expect(401);
    expect(codes).toEqual(["ip-not-allowed", "ip-not-allowed"]);
    expect([warnings, notices]).toEqual([["forwarded-for-ignored"], ["forwarded-for-ignored"]]);
    await get(build(factory, { allow: loopback }), "203.0.113.9").expect(200);
  });

  test.each([
    ["zero", 0],
    ["an empty list", []],
    ["not a number", Number.NaN],
  ])("ignores X-Forwarded-For and warns when trust proxy is %s", async (_name, trustProxy) => {
    await get(build(factory, { allow: ["198.51.100.7"] }, trustProxy), "198.51.100.7").expect(401);
    expect(warnings).toEqual(["forwarded-for-ignored"]);
  });

  test.each([
    ['the string "2"', "2"],
    ["a number in a list of strings", ["10.0.0.5", "1"]],
    ["an octal form of an address", "0177.0.0.1"],
    ["a negative hop count", -1],
    ["half a hop", 0.5],
  ])("warns once of %s as trust proxy, also without X-Forwarded-For", async (_name, trustProxy) => {
    const app = build(factory, { allow: ["198.51.100.7"] }, trustProxy);
    await get(app).expect(401);
    await get(app, "203.0.113.9").expect(401);
    expect(warnings).toEqual(["trust-proxy-misread"]);
  });

  test.each<[string, unknown, string | undefined, number, string | undefined]>([
    ["names no client", undefined, undefined, 401, "ip-unknown"],
    ["is not trusted", undefined, "198.51.100.7", 401, "ip-unknown"],
    ["is no address of a list", "loopback", "198.51.100.7", 401, "ip-unknown"],
    ["is counted", 1, "198.51.100.7", 200, undefined],
    ["is counted, of an unlisted client", 1, "198.51.100.7, 203.0.113.9", 401, "ip-not-allowed"],
    ["is counted, and names no client", 1, undefined, 401, "ip-unknown"],
  ])("decides about a proxy on a unix socket that %s", async (_name, trustProxy, forwarded, status, code) => {
    const socketPath = join(tmpdir(), `countersign-${process.pid}-${randomUUID()}.sock`);
    const app = build(factory, { allow: ["198.51.100.7"] }, trustProxy);
    const server = createServer(app).listen(socketPath);
    await once(server, "listening");
    try {
      const headers = forwarded === undefined ? {} : { "X-Forwarded-For": forwarded };
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        httpRequest({ socketPath, path: "/", headers }, resolve).on("error", reject).end();
      });
      response.resume();
      expect(response.statusCode).toBe(status);
      expect(codes).toEqual(code === undefined ? [] : [code]);
      if (code === "ip-unknown") expect(messages.join()).toMatch(/unix socket.*count the proxies/);
    } finally {
      server.close();
    }
  });

  test.each([
    ["a port", "198.51.100.7:5555", 200, undefined],
    ["a port of IPv6", "[2001:db8::7]:443", 200, undefined],
    ["no port", "198.51.100.7", 200, undefined],
    ["a port, of an unlisted client", "203.0.113.9:5555", 401, "ip-not-allowed"],
    [
      "a listed address with a port in front of its own",
      "198.51.100.7:1, 203.0.113.9:5555",
      401,
      "ip-not-allowed",
    ],
    ["the port of a proxy", "198.51.100.7:1, 127.0.0.1:5555", 401, "ip-is-proxy"],
    ["a port beyond the last", "198.51.100.7:65536", 401, "ip-unknown"],
    ["two ports", "198.51.100.7:1:2", 401, "ip-unknown"],
    ["no digits of a port", "198.51.100.7:", 401, "ip-unknown"],
    ["IPv6 with a port and without brackets", "2001:db8:1:2:3:4:5:6:443", 401, "ip-unknown"],
    ["brackets without a port", "[2001:db8::7]", 401, "ip-unknown"],
    ["IPv4 in brackets", "[198.51.100.7]:443", 401, "ip-unknown"],
    ["a zone id", "[2001:db8::7%1]:443", 401, "ip-unknown"],
    ["white space", "198.51.100.7 :1", 401, "ip-unknown"],
  ])("decides with ignorePort about a client named with %s", async (_name, forwarded, status, code) => {
    const allow = ["198.51.100.7", "2001:db8::7/128", ...loopback];
    const app = build(factory, { allow, ignorePort: true }, "loopback");
    await get(app, forwarded).expect(status);
    expect(codes).toEqual(code === undefined ? [] : [code]);
  });

  test("names ignorePort when it refuses an address with a port", async () => {
    await get(build(factory, { allow: ["198.51.100.7"] }, "loopback"), "198.51.100.7:5555").expect(401);
    expect(messages.join()).toContain("option ignorePort");
  });
});

describe("ipAllowlist without Express", () => {
  test("checks the peer of the socket and ignores X-Forwarded-For with one warning", async () => {
    const middlewares = [ipAllowlist({ allow: loopback }), ipAllowlist({ allow: ["198.51.100.7"] })];
    const server = createServer((req, res) => {
      middlewares[req.url === "/listed" ? 0 : 1]?.(req, res, (error) => {
        res.statusCode = isGuardError(error) ? error.status : 200;
        res.end();
      });
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    try {
      const { port } = server.address() as AddressInfo;
      const headers = { "X-Forwarded-For": "198.51.100.7" };
      const statuses = await Promise.all(
        ["/listed", "/unlisted"].map(async (path) => {
          const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers });
          return response.status;
        }),
      );
      expect(statuses).toEqual([200, 401]);
      expect(warnings).toEqual(["forwarded-for-ignored", "forwarded-for-ignored"]);
    } finally {
      server.close();
    }
  });

  test("asks an app that is not Express's for nothing", () => {
    const middleware = ipAllowlist({ allow: ["198.51.100.7"] });
    const next = jest.fn();
    const req = { app: { get: "no function" }, ip: "198.51.100.7", headers: {}, socket: {} };
    middleware(req as never, {} as never, next);
    expect(next).toHaveBeenCalledWith();
  });
});

describe("the factory ipAllowlist", () => {
  test("names its middleware", () => {
    expect(ipAllowlist({ allow: ["10.0.0.1"] }).name).toBe("ipAllowlistMiddleware");
  });

  test.each([
    ["no options", undefined, "options must be an object"],
    ["no list", {}, "option allow must be an array"],
    ["an empty list", { allow: [] }, "got an empty array"],
    ["a split empty environment variable", { allow: "".split(",") }, "option allow[0] must be"],
    ["a string", { allow: "10.0.0.1" }, "option allow must be an array"],
    ["an undefined entry", { allow: [undefined] }, "option allow[0] must be a string"],
    ["any address", { allow: ["0.0.0.0/0"] }, "dangerouslyAllowAnyAddress: true"],
    ["a status that is no refusal", { allow: ["10.0.0.1"], status: 200 }, "option status must be"],
    ["a status of the server", { allow: ["10.0.0.1"], status: 500 }, "option status must be"],
    [
      "a word for ignorePort",
      { allow: ["10.0.0.1"], ignorePort: "yes" },
      "option ignorePort must be true or false",
    ],
    ["an unknown option", { allow: ["10.0.0.1"], deny: [] }, "unknown option deny"],
  ])("throws on %s", (_name, options, message) => {
    const create = (): unknown => ipAllowlist(options as IpAllowlistOptions);
    expect(create).toThrow(TypeError);
    expect(create).toThrow("ipAllowlist: ");
    expect(create).toThrow(message);
  });

  test("admits every IPv4 address only when told so by a dangerous name", async () => {
    const app = build(express, { allow: ["0.0.0.0/0"], dangerouslyAllowAnyAddress: true });
    await get(app).expect(200);
  });
});
