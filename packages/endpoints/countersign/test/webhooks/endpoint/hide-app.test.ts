import { once } from "node:events";
import { connect } from "node:net";
import { captureRawBody } from "@countersign/raw-body";
import { signPayload } from "@countersign/webhook-hmac";
import { webhookEndpoint } from "countersign/webhooks";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { Router, type Express, type RequestHandler } from "express";
import express4 from "express4";
import { exchange, rawRequest, withServer } from "@countersign/test-support/servers/wire.ts";
import {
  appErrors,
  basic,
  delivery,
  envelope,
  handlerOf,
  jsonNotFound,
  optionsWith,
  path,
  rejections,
  siteOf,
  success,
  type Site,
  type WebhookChanges,
  expressVersions,
} from "./endpoint.ts";

type WebhookEndpointOptions = Parameters<typeof webhookEndpoint>[0];

const emitWarning = jest.spyOn(process, "emitWarning");

beforeEach(() => {
  emitWarning.mockReset().mockImplementation(() => undefined);
});

afterEach(() => {
  emitWarning.mockReset();
});

/** The answer to `request` with the endpoint, and the app's 404 of a request for the same path without a body. */
async function hiddenAndUnknown(
  site: Site,
  options: WebhookEndpointOptions,
  request: Buffer,
): Promise<[string, string]> {
  const method = request.toString("latin1", 0, request.indexOf(" "));
  const hidden = await withServer(siteOf(site, options), (port) => exchange(port, request));
  const unknown = await withServer(siteOf(site), (port) => exchange(port, rawRequest(method, path)));
  expect(unknown).toMatch(/^HTTP\/1.1 404 Not Found\r\n/);
  return [hidden, unknown];
}

async function answerOf(app: Express, changes: WebhookChanges = {}): Promise<string> {
  return withServer(app, (port) => exchange(port, delivery(changes)));
}

const malformed = '{"webhook_id":';

describe.each(expressVersions)("webhookEndpoint hidden on %s", (_version, factory) => {
  describe("behind a global express.json()", () => {
    const site: Site = { factory, before: factory.json() };

    test.each<[string, string, WebhookChanges]>([
      ["malformed JSON", "entity.parse.failed", { body: malformed }],
      [
        "malformed JSON and a wrong password",
        "entity.parse.failed",
        { body: malformed, headers: { Authorization: basic("service", "wrong") } },
      ],
      ["malformed JSON by PUT", "entity.parse.failed", { body: malformed, method: "PUT" }],
      ["malformed JSON by OPTIONS", "entity.parse.failed", { body: malformed, method: "OPTIONS" }],
      ["malformed JSON by HEAD", "entity.parse.failed", { body: malformed, method: "HEAD" }],
      ["a body above the parser's limit", "entity.too.large", { body: `"${"a".repeat(150_000)}"` }],
      [
        "a body above the parser's limit in chunks",
        "entity.too.large",
        { body: `"${"a".repeat(150_000)}"`, chunked: true },
      ],
      [
        "an unknown charset",
        "charset.unsupported",
        { headers: { "Content-Type": "application/json; charset=klingon" } },
      ],
      ["an unknown content coding", "encoding.unsupported", { headers: { "Content-Encoding": "klingon" } }],
      ["JSON that the parser has consumed", "body-already-consumed", {}],
      ["another media type", "media-type-unsupported", { headers: { "Content-Type": "text/plain" } }],
    ])("answers %s as an unknown route", async (_name, code, changes) => {
      const { codes, onReject } = rejections();
      const [hidden, unknown] = await hiddenAndUnknown(site, optionsWith({ onReject }), delivery(changes));
      expect(hidden).toBe(unknown);
      expect(codes).toEqual([code]);
    });

    test("warns once that the parser consumes the body, when nobody takes reports", async () => {
      await withServer(siteOf(site, optionsWith()), async (port) => {
        await exchange(port, delivery());
        await exchange(port, delivery());
      });
      expect(emitWarning.mock.calls).toEqual([
        [expect.stringMatching(/^webhookEndpoint hid .* body-already-consumed: .*captureRawBody/)],
      ]);
    });

    test("warns of no refusal that is the caller's fault", async () => {
      const wrong = { headers: { Authorization: basic("service", "wrong") } };
      await answerOf(siteOf(site, optionsWith()), wrong);
      await answerOf(siteOf({ factory }, optionsWith()), { body: malformed });
      await answerOf(
        siteOf({ factory }, optionsWith({ handler: handlerOf(() => Promise.reject(new Error())) })),
      );
      expect(emitWarning).not.toHaveBeenCalled();
    });

    test("handles the webhook when the parser keeps the bytes", async () => {
      const seen: string[] = [];
      const handler = handlerOf((event) => seen.push(event.event_id));
      const before = factory.json({ verify: captureRawBody });
      expect(await answerOf(siteOf({ factory, before }, optionsWith({ handler })))).toBe(success);
      expect(seen).toEqual(["ev_1"]);
    });
  });

  test("hides the error of any middleware before it, and the status that it left", async () => {
    const before: RequestHandler = (req, res, next) => {
      if (req.method !== "PATCH") {
        next();
        return;
      }
      res.status(502);
      next(new Error("session store down"));
    };
    const { codes, onReject } = rejections();
    const site = { factory, before, notFound: jsonNotFound };
    const app = siteOf(site, optionsWith({ onReject }));
    const hidden = await answerOf(app, { method: "PATCH" });
    const unknown = await withServer(siteOf({ factory, notFound: jsonNotFound }), (port) =>
      exchange(port, rawRequest("PATCH", path)),
    );
    expect(hidden).toBe(unknown);
    expect(codes).toEqual([new Error("session store down")]);
  });

  describe("for paths other than its own", () => {
    test.each([
      ["a path below", `${path}/a`],
      ["an absolute-form target", `http://platform.example${path}`],
      ["a path that begins alike", `${path}0`],
    ])("leaves a genuine delivery to %s to the app", async (_name, target) => {
      const { codes, onReject } = rejections();
      const seen: string[] = [];
      const handler = handlerOf((event) => seen.push(event.event_id));
      const site: Site = { factory, notFound: jsonNotFound };
      const request = delivery({ path: target });
      const answer = await withServer(siteOf(site, optionsWith({ handler, onReject })), (port) =>
        exchange(port, request),
      );
      expect(answer).toBe(await withServer(siteOf(site), (port) => exchange(port, request)));
      expect(seen).toEqual([]);
      expect(codes).toEqual([]);
    });

    test("leaves an error on a path below to the app", async () => {
      const { codes, onReject } = rejections();
      const site: Site = { factory, before: factory.json() };
      const request = delivery({ path: `${path}/a`, body: malformed });
      const app = siteOf(site, optionsWith({ onReject }));
      app.use(appErrors);
      expect(await withServer(app, (port) => exchange(port, request))).toMatch(/\{"app":true\}$/);
      expect(codes).toEqual([]);
    });

    test.each([
      ["a query", `${path}?attempt=2`],
      ["a slash at the end", `${path}/`],
    ])("takes a genuine delivery to its path with %s", async (_name, target) => {
      expect(await answerOf(siteOf({ factory }, optionsWith()), { path: target })).toBe(success);
    });

    test("refuses a wrong password in another letter case of the path as an unknown route", async () => {
      const request = delivery({ path: path.toUpperCase(), headers: { Authorization: undefined } });
      const hidden = await withServer(siteOf({ factory }, optionsWith()), (port) => exchange(port, request));
      expect(hidden).toBe(await withServer(siteOf({ factory }), (port) => exchange(port, request)));
    });
  });

  describe("mounted with app.all", () => {
    function appWith(onReject?: (error: unknown) => void): Express {
      const app = siteOf({ factory });
      app.all(path, webhookEndpoint(optionsWith({ onReject })));
      return app;
    }

    test("takes a genuine delivery", async () => {
      expect(await answerOf(appWith())).toBe(success);
    });

    test.each(["GET", "HEAD", "OPTIONS", "POST"])("answers a %s as an unknown route", async (method) => {
      const request = rawRequest(method, path);
      const unknown = await withServer(siteOf({ factory }), (port) => exchange(port, request));
      expect(await withServer(appWith(), (port) => exchange(port, request))).toBe(unknown);
    });

    test("is not in another letter case", async () => {
      const { codes, onReject } = rejections();
      const request = delivery({ path: path.toUpperCase() });
      const unknown = await withServer(siteOf({ factory }), (port) => exchange(port, request));
      expect(await withServer(appWith(onReject), (port) => exchange(port, request))).toBe(unknown);
      expect(codes).toEqual([]);
    });
  });

  describe("mounted otherwise", () => {
    const routerOf = (): Router => (factory === express4 ? (express4.Router() as Router) : Router());

    test("in a router of a mounted app answers as that app's unknown route, and takes a delivery", async () => {
      const build = (options?: WebhookEndpointOptions): Express => {
        const app = factory();
        const inner = factory();
        const router = routerOf();
        if (options !== undefined) router.use("/3f9c2a7be1d04c55a1b2c3d4e5f60718", webhookEndpoint(options));
        inner.use("/hooks", router);
        return app.use(inner).set("env", "test");
      };
      const wrong = delivery({ headers: { Authorization: basic("service", "wrong") } });
      const hidden = await withServer(build(optionsWith()), (port) => exchange(port, wrong));
      expect(hidden).toBe(await withServer(build(), (port) => exchange(port, wrong)));
      expect(await answerOf(build(optionsWith()))).toBe(success);
      expect(await answerOf(build(optionsWith()), { path: `${path}/a` })).toMatch(/^HTTP\/1.1 404 /);
    });

    test("several times in one app, each takes its own credentials alone", async () => {
      const app = factory().set("env", "test");
      const second = { username: "other", password: "test-password-2" };
      app.use(path, webhookEndpoint(optionsWith()));
      app.use(
        "/hooks/2",
        webhookEndpoint(
          optionsWith({ basicAuth: { credentials: [second] }, hmac: { secrets: ["test-secret-2"] } }),
        ),
      );
      const own = {
        path: "/hooks/2",
        headers: {
          Authorization: basic("other", "test-password-2"),
          "X-Payload-Signature": signPayload(Buffer.from(envelope("ev_1")), "test-secret-2"),
        },
      };
      await withServer(app, async (port) => {
        expect(await exchange(port, delivery())).toBe(success);
        expect(await exchange(port, delivery(own))).toBe(success);
        const statuses = [
          await exchange(port, delivery({ path: "/hooks/2" })),
          await exchange(port, delivery({ ...own, path })),
          await exchange(port, delivery({ ...own, headers: { Authorization: own.headers.Authorization } })),
        ].map((answer) => answer.slice(0, 12));
        expect(statuses).toEqual(["HTTP/1.1 404", "HTTP/1.1 404", "HTTP/1.1 404"]);
      });
    });
  });

  describe("with a body that does not come", () => {
    test.each<[string, Record<string, string | undefined>]>([
      ["a wrong password", { Authorization: basic("service", "wrong") }],
      ["another media type", { "Content-Type": "text/plain" }],
      ["no signature", { "X-Payload-Signature": undefined }],
      ["a Content-Length above the limit", { "Content-Length": "2000" }],
    ])(
      "refuses %s before the body, where the app's 404 does not wait for it either",
      async (_name, headers) => {
        const head = delivery({
          body: "",
          keepAlive: true,
          headers: { "Content-Length": "1000", ...headers },
        });
        const site: Site = { factory, notFound: jsonNotFound };
        await withServer(siteOf(site, optionsWith()), async (port) => {
          const socket = connect({ port, host: "127.0.0.1" });
          socket.write(head);
          const [first] = (await once(socket, "data")) as [Buffer];
          expect(first.toString()).toMatch(/^HTTP\/1.1 404 Not Found\r\n/);
          socket.destroy();
        });
      },
    );

    test("says nothing about a client that leaves in the middle, and serves the next", async () => {
      const { codes, onReject } = rejections();
      await withServer(siteOf({ factory }, optionsWith({ onReject })), async (port) => {
        const socket = connect({ port, host: "127.0.0.1" });
        socket.write(delivery({ body: envelope("ev_1"), headers: { "Content-Length": "900" } }));
        await new Promise((resolve) => setTimeout(resolve, 20));
        socket.destroy();
        await once(socket, "close");
        expect(await exchange(port, delivery())).toBe(success);
      });
      expect(codes).toEqual([]);
    });
  });

  test("leaves alone what the app answered while the handler ran", async () => {
    const before: RequestHandler = (_req, res, next) => {
      setTimeout(() => res.status(504).end(), 5);
      next();
    };
    const handler = handlerOf(() => new Promise((resolve) => setTimeout(resolve, 30)));
    const app = siteOf({ factory, before }, optionsWith({ hmac: { limit: "1mb" }, handler }));
    await withServer(app, async (port) => {
      expect(await exchange(port, delivery())).toMatch(/^HTTP\/1.1 504 /);
      await new Promise((resolve) => setTimeout(resolve, 60));
    });
    expect(emitWarning).not.toHaveBeenCalled();
  });

  test.each([
    ["at once", () => undefined],
    ["later", async () => undefined],
  ])(
    "hides what the app's own hook on the answer throws, with a handler that ends %s",
    async (_when, work) => {
      const before: RequestHandler = (_req, res, next) => {
        const { end } = res;
        res.end = () => {
          res.end = end;
          throw new Error("no answer");
        };
        next();
      };
      const { codes, onReject } = rejections();
      const app = siteOf({ factory, before }, optionsWith({ handler: handlerOf(work), onReject }));
      await withServer(app, async (port) => {
        expect(await exchange(port, delivery())).toMatch(/^HTTP\/1.1 404 /);
      });
      expect(codes).toHaveLength(1);
    },
  );
});
