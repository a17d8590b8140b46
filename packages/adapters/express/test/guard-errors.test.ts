import { request as httpRequest } from "node:http";
import { connect as connectHttp2, createServer as createHttp2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { GuardError } from "@countersign/core";
import { guard, guardErrors } from "@countersign/express";
import type * as corePackage from "@countersign/core";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import type { ErrorRequestHandler, Express } from "express";
import express4 from "express4";
import { expressVersionsWith, type ExpressFactory } from "@countersign/test-support/runs/express-versions.ts";
import supertest from "supertest";
import { exchange, rawRequest, withServer } from "@countersign/test-support/servers/wire.ts";

type GuardErrorsOptions = NonNullable<Parameters<typeof guardErrors>[0]>;

const init: ConstructorParameters<typeof GuardError>[0] = {
  status: 401,
  code: "signature-missing",
  message: "no Signature field",
};
const emitWarning = jest.spyOn(process, "emitWarning");

beforeEach(() => {
  emitWarning.mockReset().mockImplementation(() => undefined);
});

afterEach(() => {
  emitWarning.mockReset();
});

type GuardErrorModule = Pick<typeof corePackage, "GuardError">;

const lastResort: ErrorRequestHandler = (other: Error, _req, res, _next) => {
  res.status(500).send(`last resort: ${other.message}`);
};

function refusing(factory: ExpressFactory, error: unknown, options?: GuardErrorsOptions): Express {
  const app = factory();
  app.use(guard("exampleGuard", () => Promise.reject(error as Error)));
  app.use(guardErrors(options));
  app.use(lastResort);
  return app;
}

function answerOf(factory: ExpressFactory, error: unknown, options?: GuardErrorsOptions): Promise<string> {
  return withServer(refusing(factory, error, options), (port) =>
    exchange(port, rawRequest("POST", "/payouts")),
  );
}

describe.each(expressVersionsWith(express4))("guardErrors on %s", (_version, factory) => {
  test("answers a refusal that a framework hands on as an exception of the same status, and no other cause", async () => {
    const handedOn = (getStatus: unknown): Error =>
      Object.assign(new Error("handed on", { cause: new GuardError(init) }), { getStatus });
    const plain = await answerOf(factory, new GuardError(init));
    expect(
      await answerOf(
        factory,
        handedOn(() => 401),
      ),
    ).toBe(plain);
    for (const other of [() => 500, undefined, 401]) {
      // oxlint-disable-next-line no-await-in-loop -- one app after the other
      expect(await answerOf(factory, handedOn(other))).toContain("last resort: handed on");
    }
  });

  test("gives every 401 the same bytes", async () => {
    const causes: Partial<typeof init>[] = [
      { code: "signature-missing" },
      { code: "nonce-seen", message: "the nonce was used before" },
      { code: "digest-mismatch", headers: { "Want-Content-Digest": "sha-256=10", "Retry-After": "3" } },
      { code: "ip-not-allowed", problem: { address: "203.0.113.9" } },
      { code: "keyid-unknown", cause: new Error("not found") },
    ];
    const answers = await Promise.all(
      causes.map((cause) => answerOf(factory, new GuardError({ ...init, ...cause }))),
    );
    expect(new Set(answers).size).toBe(1);
    const [head = "", body] = answers[0]?.split("\r\n\r\n") ?? [];
    expect(body).toBe('{"type":"about:blank","title":"Unauthorized","status":401}');
    expect(head.split("\r\n")).toEqual([
      "HTTP/1.1 401 Unauthorized",
      "X-Powered-By: Express",
      "Cache-Control: no-store",
      "Content-Type: application/problem+json",
      "Content-Length: 58",
      "Date: -",
      "Connection: close",
    ]);
  });

  test("gives every 401 the header fields of the option, whatever the cause", async () => {
    const options = { unauthorizedHeaders: { "Want-Content-Digest": "sha-256=10", "X-Unset": undefined } };
    const answers = await Promise.all(
      ["signature-missing", "digest-mismatch"].map((code) =>
        answerOf(
          factory,
          new GuardError({ ...init, code, headers: { "Want-Content-Digest": "no" } }),
          options,
        ),
      ),
    );
    expect(new Set(answers).size).toBe(1);
    expect(answers[0]).toContain("\r\nWant-Content-Digest: sha-256=10\r\n");
    expect(answers[0]).not.toContain("X-Unset");
  });

  test("sends WWW-Authenticate of a 401 in any spelling, and no other field of it", async () => {
    const headers = { "www-authenticate": 'Basic realm="webhooks"', "X-Reason": "password" };
    const response = await supertest(refusing(factory, new GuardError({ ...init, headers }))).get("/");
    expect(response.headers["www-authenticate"]).toBe('Basic realm="webhooks"');
    expect(response.headers["x-reason"]).toBeUndefined();
  });

  test("never lets an extension member replace status, title or code", async () => {
    const problem = { status: 200, title: "OK", code: "paid", type: "x" };
    const error = new GuardError({ status: 409, code: "already-processed", message: "seen", problem });
    const response = await supertest(refusing(factory, error)).get("/").expect(409);
    expect(JSON.parse(response.text)).toEqual({
      type: "about:blank",
      title: "Conflict",
      status: 409,
      code: "already-processed",
    });
  });

  test("gives a title to a status without a name", async () => {
    const error = new GuardError({ status: 499, code: "odd", message: "odd" });
    const response = await supertest(refusing(factory, error)).get("/").expect(499);
    expect(JSON.parse(response.text)).toMatchObject({ title: "Error", status: 499 });
  });

  test("answers HEAD with the same header fields and no body", async () => {
    const app = refusing(factory, new GuardError(init));
    const [get, head] = await withServer(app, (port) =>
      Promise.all(["GET", "HEAD"].map((method) => exchange(port, rawRequest(method, "/")))),
    );
    expect(head).toBe(get?.slice(0, get.indexOf("\r\n\r\n") + 4));
  });

  test("renders an error of another copy of the package", async () => {
    const otherCopy = "../../../kernel/core/dist/guard-error.js?copy";
    const other = (await import(otherCopy)) as GuardErrorModule;
    const answers = await Promise.all([
      answerOf(factory, new other.GuardError(init)),
      answerOf(factory, new GuardError(init)),
    ]);
    expect(answers[0]).toBe(answers[1]);
  });

  test("hands an error that is not a guard's on, unreported", async () => {
    const onReject = jest.fn();
    const app = refusing(factory, new Error("of the app"), { onReject });
    await supertest(app).get("/").expect(500, "last resort: of the app");
    expect(onReject).not.toHaveBeenCalled();
    expect(emitWarning).not.toHaveBeenCalled();
  });

  test("reports each refusal once, before the answer", async () => {
    const error = new GuardError(init);
    const seen: unknown[] = [];
    const app = refusing(factory, error, {
      onReject: (reported, req) => seen.push([reported, req.url, req.method]),
    });
    await supertest(app).get("/payouts").expect(401);
    expect(seen).toEqual([[error, "/payouts", "GET"]]);
  });

  test.each([
    [
      "throws",
      (): void => {
        throw new Error("log is full");
      },
    ],
    ["rejects", () => Promise.reject(new Error("log is full"))],
  ])("answers as ever when onReject %s, and warns", async (_name, onReject) => {
    await supertest(refusing(factory, new GuardError(init), { onReject }))
      .get("/")
      .expect(401);
    expect(emitWarning.mock.calls).toEqual([
      [
        'guardErrors caught what onReject threw: Error: "log is full"',
        { detail: expect.stringMatching(/^at /) },
      ],
    ]);
  });

  test.each([
    ["problem details", {}],
    ["hiding", { hide: true }],
  ])("leaves an answer that has begun to Express, which cuts it off: %s", async (_name, options) => {
    const app = factory();
    app.get(
      "/",
      guard("exampleGuard", async (_req, res) => {
        res.writeHead(200, { "Content-Length": "100" }).write("half");
        await Promise.reject(new GuardError(init));
      }),
    );
    const onReject = jest.fn();
    app.use(guardErrors({ ...options, onReject }));
    app.set("env", "test");
    await withServer(app, async (port) => {
      const cut = await new Promise<string>((resolve, reject) => {
        httpRequest({ port, host: "127.0.0.1" }, (res) => {
          res.resume().on("error", (error: NodeJS.ErrnoException) => resolve(String(error.code)));
          res.on("end", () => reject(new Error("the answer is complete")));
        })
          .on("error", reject)
          .end();
      });
      expect(cut).toBe("ECONNRESET");
    });
    expect(onReject).not.toHaveBeenCalled();
  });
});

describe("the factory guardErrors", () => {
  test.each([
    ["no object", null, "options must be an object"],
    ["an unknown option", { hidden: true }, "unknown option hidden"],
    ["hide as text", { hide: "true" }, "option hide must be true or false"],
    ["onReject as text", { onReject: "log" }, "option onReject must be a function"],
    ["header fields as text", { unauthorizedHeaders: "Retry-After" }, "option unauthorizedHeaders must be"],
    ["header fields as an array", { unauthorizedHeaders: ["a"] }, "option unauthorizedHeaders must be"],
    ["no header fields", { unauthorizedHeaders: null }, "option unauthorizedHeaders must be"],
    ["a bad field name", { unauthorizedHeaders: { "a b": "1" } }, 'unauthorizedHeaders["a b"]'],
    ["a bad field value", { unauthorizedHeaders: { a: "1\r\nb: 2" } }, 'unauthorizedHeaders["a"]'],
    ["a bad line", { unauthorizedHeaders: { a: ["1", "\n"] } }, 'unauthorizedHeaders["a"]'],
  ])("throws on %s", (_name, options, message) => {
    const create = (): unknown => guardErrors(options as GuardErrorsOptions);
    expect(create).toThrow(TypeError);
    expect(create).toThrow("guardErrors: ");
    expect(create).toThrow(expect.objectContaining({ factory: "guardErrors" }));
    expect(create).toThrow(message);
  });
});

test("says nothing of the connection over HTTP/2, which has no such field", async () => {
  const headers = { "Retry-After": "5", Connection: "close" };
  const refused = new GuardError({ ...init, status: 503, code: "draining", headers });
  const answer = guardErrors();
  const named: string[] = [];
  const server = createHttp2Server((req, res) => {
    const set = res.setHeader.bind(res);
    res.setHeader = (name, value) => {
      named.push(name);
      return set(name, value);
    };
    answer(refused, req as never, res as never, () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const session = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  try {
    const fields = await new Promise<object>((resolve, reject) => {
      session.request({ ":path": "/" }).once("response", resolve).once("error", reject).resume();
    });
    expect(fields).toMatchObject({ ":status": 503, "retry-after": "5" });
    // Node drops the field by itself, and warns of it.
    expect(named).toContain("Retry-After");
    expect(named).not.toContain("Connection");
  } finally {
    session.close();
    server.close();
  }
});
