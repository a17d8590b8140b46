import { METHODS } from "node:http";
import { GuardError } from "@countersign/core";
import { guard, guardErrors } from "@countersign/express";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import express, { type Express, type RequestHandler } from "express";
import express4 from "express4";
import { exchange, rawRequest, withServer } from "@countersign/test-support/servers/wire.ts";

type GuardErrorsOptions = NonNullable<Parameters<typeof guardErrors>[0]>;

const path = "/hooks/3f9c2a7be1d04c55a1b2c3d4e5f60718";
const refusal = new GuardError({
  status: 401,
  code: "credentials-wrong",
  message: "wrong password",
  headers: { "WWW-Authenticate": "Basic" },
});
const emitWarning = jest.spyOn(process, "emitWarning");

beforeEach(() => {
  emitWarning.mockReset().mockImplementation(() => undefined);
});

afterEach(() => {
  emitWarning.mockReset();
});

interface Site {
  readonly factory: typeof express;
  readonly notFound?: RequestHandler | undefined;
  readonly options?: GuardErrorsOptions | undefined;
}

/** The same app with and without what is mounted on the secret path. */
function build({ factory, notFound, options }: Site, onPath?: RequestHandler): Express {
  const app = factory();
  app.use((_req, res, next) => {
    res.setHeader("X-Site", "platform");
    next();
  });
  app.use(express.json());
  app.get("/", (_req, res) => {
    res.send("home");
  });
  if (onPath !== undefined) app.use(path, onPath);
  app.use(guardErrors({ hide: true, ...options }));
  if (notFound !== undefined) app.use(notFound);
  app.set("env", "test");
  return app;
}

function customNotFound(): RequestHandler {
  return (req, res) => {
    if (res.statusCode === 200) res.status(404);
    res.json({ error: "nothing here", path: req.originalUrl, url: req.url });
  };
}

async function answers(site: Site, onPath: RequestHandler, request: string): Promise<[string, string]> {
  const hidden = await withServer(build(site, onPath), (port) => exchange(port, request));
  const unknown = await withServer(build(site), (port) => exchange(port, request));
  return [hidden, unknown];
}

const refuse = guard("exampleGuard", () => Promise.reject(refusal)) as unknown as RequestHandler;
const failWithStatus: RequestHandler = (_req, res, next) => {
  res.status(502);
  next(new Error("upstream"));
};
const methods = METHODS.filter((method) => method !== "CONNECT");

describe.each([
  ["express 5", express],
  ["express 4", express4],
])("guardErrors({ hide: true }) on %s", (_version, factory) => {
  describe.each([
    ["the default 404 page", undefined],
    ["a custom 404 handler", customNotFound()],
  ])("with %s", (_page, notFound) => {
    const site: Site = { factory, notFound };

    test.each(methods)("answers %s byte for byte as an unknown path", async (method) => {
      const [hidden, unknown] = await answers(site, refuse, rawRequest(method, path));
      expect(hidden).toMatch(/^HTTP\/1.1 404 Not Found\r\n/);
      expect(hidden).toBe(unknown);
    });

    test.each([
      ["a body", rawRequest("POST", path, '{"events":[]}')],
      ["malformed JSON, which the app's parser refuses", rawRequest("POST", path, '{"events":')],
      ["a body above the parser's limit", rawRequest("POST", path, `"${"a".repeat(150_000)}"`)],
      ["a query", rawRequest("POST", `${path}?a=1`)],
      ["a path below", rawRequest("POST", `${path}/a`)],
      ["another case of the path", rawRequest("POST", path.toUpperCase())],
      ["HTTP/1.0", `POST ${path} HTTP/1.0\r\n\r\n`],
    ])("answers %s byte for byte as an unknown path", async (_name, request) => {
      const [hidden, unknown] = await answers(site, refuse, request);
      expect(hidden).toMatch(/^HTTP\/1.1 404 Not Found\r\n/);
      expect(hidden).toBe(unknown);
    });

    test("answers an error of the app that left a status behind as an unknown path", async () => {
      const [hidden, unknown] = await answers(site, failWithStatus, rawRequest("POST", path));
      expect(hidden).toBe(unknown);
    });
  });

  test("reports guard errors and all others to onReject", async () => {
    const codes: unknown[] = [];
    const onReject = (error: unknown): void => {
      codes.push((error as { code?: string; type?: string }).code ?? (error as { type?: string }).type);
    };
    const site = { factory, options: { onReject } };
    await withServer(build(site, refuse), async (port) => {
      await exchange(port, rawRequest("POST", path));
      await exchange(port, rawRequest("POST", path, "{"));
    });
    expect(codes).toEqual(["credentials-wrong", "entity.parse.failed"]);
    expect(emitWarning).not.toHaveBeenCalled();
  });

  test("warns of errors that are not a guard's when nobody takes reports", async () => {
    await withServer(build({ factory }, refuse), async (port) => {
      await exchange(port, rawRequest("POST", path));
      expect(emitWarning).not.toHaveBeenCalled();
      await exchange(port, rawRequest("POST", path, '{"a\n\u001b": x'));
    });
    expect(emitWarning).toHaveBeenCalledTimes(1);
    const [text, options] = emitWarning.mock.calls[0] ?? [];
    expect(text).toMatch(/^guardErrors hid an error: SyntaxError: "/);
    expect(text).not.toMatch(/[^\x20-\x7e]/);
    expect(options).toEqual({ detail: expect.stringMatching(/^at /) });
  });

  test.each([
    ["a thrown string", "attacker\ntext", "a value that is no Error", {}],
    [
      "an error without a stack",
      Object.assign(new Error("a\nb"), { stack: undefined }),
      'Error: "a\\u000ab"',
      {},
    ],
    [
      "an error whose stack was written anew",
      Object.assign(new Error("message"), { stack: "other" }),
      'Error: "message"',
      {},
    ],
  ])("warns of %s", async (_name, thrown, text, options) => {
    const failing: RequestHandler = (_req, _res, next) => {
      next(thrown);
    };
    const [hidden, unknown] = await answers({ factory }, failing, rawRequest("GET", path));
    expect(hidden).toBe(unknown);
    expect(emitWarning.mock.calls).toEqual([[`guardErrors hid an error: ${text}`, options]]);
  });
});
