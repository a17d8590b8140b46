import { once } from "node:events";
import { createServer, request as httpRequest } from "node:http";
import { createServer as createTlsServer, request as httpsRequest } from "node:https";
import type { AddressInfo } from "node:net";
import { isGuardError } from "@countersign/core";
import { guardErrors } from "@countersign/express";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import type { Express } from "express";
import express4 from "express4";
import { expressVersionsWith, type ExpressFactory } from "@countersign/test-support/runs/express-versions.ts";
import { httpsOnly } from "countersign/webhooks";

// TLS with a shared key, so that the test needs no certificate.
const sharedKey = Buffer.from("test-secret-of-the-tls-connection");
const tls = { ciphers: "PSK", minVersion: "TLSv1.2", maxVersion: "TLSv1.2" } as const;

let codes: string[] = [];
beforeEach(() => {
  codes = [];
});

interface Setup {
  readonly options?: Parameters<typeof httpsOnly>[0] | undefined;
  readonly trustProxy?: unknown;
}

function appOf(factory: ExpressFactory, { options, trustProxy }: Setup): Express {
  const app = factory();
  if (trustProxy !== undefined) app.set("trust proxy", trustProxy);
  app.use(httpsOnly(options));
  app.use((_req, res) => {
    res.sendStatus(200);
  });
  app.use(
    guardErrors({
      onReject: (error) => {
        if (isGuardError(error)) codes.push(error.code);
      },
    }),
  );
  return app;
}

/** The status of one request with these X-Forwarded-Proto lines, over TLS or not. */
async function ask(
  listener: Parameters<typeof createServer>[1],
  { secure = false, proto = [] }: { readonly secure?: boolean; readonly proto?: readonly string[] } = {},
): Promise<number | undefined> {
  const server = secure
    ? createTlsServer({ ...tls, pskCallback: () => sharedKey }, listener)
    : createServer(listener ?? (() => {}));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const target = { host: "127.0.0.1", port, headers: { "X-Forwarded-Proto": [...proto] }, agent: false };
  const pskCallback = (): { psk: Buffer; identity: string } => ({ psk: sharedKey, identity: "test" });
  const secureTarget = { ...target, ...tls, pskCallback, checkServerIdentity: () => undefined };
  const request = secure ? httpsRequest(secureTarget) : httpRequest(target);
  try {
    request.end();
    const [response] = await once(request, "response");
    response.resume();
    return response.statusCode;
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

describe.each(expressVersionsWith(express4))("httpsOnly on %s", (_version, factory) => {
  test("refuses plain HTTP", async () => {
    expect(await ask(appOf(factory, {}))).toBe(403);
    expect(codes).toEqual(["https-required"]);
  });

  test("answers the status of the option", async () => {
    expect(await ask(appOf(factory, { options: { status: 404 } }))).toBe(404);
  });

  test("admits TLS", async () => {
    expect(await ask(appOf(factory, {}), { secure: true })).toBe(200);
    expect(codes).toEqual([]);
  });

  test.each([
    ["a list with the peer", ["127.0.0.1"]],
    ["the loopback range", "loopback"],
    ["one hop", 1],
    ["a function", (address: string, hop: number) => address === "127.0.0.1" && hop === 0],
  ])("admits what a proxy trusted by %s calls https", async (_title, trustProxy) => {
    expect(await ask(appOf(factory, { trustProxy }), { proto: ["https"] })).toBe(200);
  });

  test.each([
    ["nobody is trusted", undefined],
    ["trust is off", false],
    ["no hop is trusted", 0],
    ["another address is trusted", ["203.0.113.1"]],
  ])("refuses X-Forwarded-Proto when %s", async (_title, trustProxy) => {
    expect(await ask(appOf(factory, { trustProxy }), { proto: ["https"] })).toBe(403);
    expect(codes).toEqual(["https-required"]);
  });

  test.each([
    ["http", ["http"]],
    ["another case", ["HTTPS"]],
    ["https first in a list", ["https, http"]],
    ["https last in a list", ["http, https"]],
    ["https twice in a list", ["https,https"]],
    ["https in two lines", ["https", "https"]],
    ["https before http in two lines", ["https", "http"]],
    ["a longer word", ["https1"]],
    ["an empty value", [""]],
    ["no line", []],
  ])("refuses a trusted proxy that says %s", async (_title, proto) => {
    expect(await ask(appOf(factory, { trustProxy: ["127.0.0.1"] }), { proto })).toBe(403);
    expect(codes).toEqual(["https-required"]);
  });

  test.each([["true", true]])(
    "refuses everything with 500 while trust proxy is %s, and warns once",
    async (_title, trustProxy) => {
      const warnings: unknown[] = [];
      const emitWarning = jest
        .spyOn(process, "emitWarning")
        .mockImplementation(
          ((text: unknown, { code }: { code: string }) =>
            void warnings.push([code, String(text).split(":")[0]])) as typeof process.emitWarning,
        );
      const app = appOf(factory, { trustProxy });
      expect(await ask(app, { proto: ["https"] })).toBe(500);
      expect(await ask(app)).toBe(500);
      expect(await ask(app, { secure: true })).toBe(500);
      emitWarning.mockRestore();
      expect(codes).toEqual(["trust-proxy-unsafe", "trust-proxy-unsafe", "trust-proxy-unsafe"]);
      expect(warnings).toEqual([["trust-proxy-unsafe", "httpsOnly"]]);
    },
  );

  test("believes a trusted proxy on TLS that the caller came by http", async () => {
    expect(await ask(appOf(factory, { trustProxy: ["127.0.0.1"] }), { secure: true, proto: ["http"] })).toBe(
      403,
    );
  });

  test("takes no notice on TLS of what a stranger says", async () => {
    expect(await ask(appOf(factory, {}), { secure: true, proto: ["http"] })).toBe(200);
  });

  test("follows the trust proxy setting of the app around a mounted one", async () => {
    const outer = factory();
    outer.set("trust proxy", ["127.0.0.1"]);
    outer.use("/", appOf(factory, {}));
    expect(await ask(outer, { proto: ["https"] })).toBe(200);
  });

  test("admits plain HTTP with dangerouslyAllowHttp", async () => {
    expect(await ask(appOf(factory, { options: { dangerouslyAllowHttp: true } }))).toBe(200);
  });
});

describe("httpsOnly without Express", () => {
  const middleware = httpsOnly();
  const listener: Parameters<typeof createServer>[1] = (req, res) => {
    middleware(req, res, (error) => {
      res.statusCode = isGuardError(error) ? error.status : 200;
      res.end();
    });
  };

  test.each([
    ["refuses plain HTTP whatever its fields say", { proto: ["https"] }, 403],
    ["admits TLS", { secure: true }, 200],
  ])("%s", async (_title, request, status) => {
    expect(await ask(listener, request)).toBe(status);
  });
});

describe("the options of httpsOnly", () => {
  const before = process.env["NODE_ENV"];
  afterEach(() => {
    process.env["NODE_ENV"] = before;
  });

  test.each([
    ["an unknown option", { allowHttp: true }],
    ["a string for dangerouslyAllowHttp", { dangerouslyAllowHttp: "1" }],
    ["a status of success", { status: 200 }],
    ["a server error", { status: 503 }],
  ])("refuse %s", (_title, options) => {
    expect(() => httpsOnly(options as Parameters<typeof httpsOnly>[0])).toThrow(TypeError);
  });

  test("refuse plain HTTP in production, and only there", () => {
    process.env["NODE_ENV"] = "production";
    expect(() => httpsOnly({ dangerouslyAllowHttp: true })).toThrow(/NODE_ENV is production/);
    expect(() => httpsOnly({ dangerouslyAllowHttp: false })).not.toThrow();
    process.env["NODE_ENV"] = "development";
    expect(() => httpsOnly({ dangerouslyAllowHttp: true })).not.toThrow();
  });
});
